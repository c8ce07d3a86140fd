//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// apiServerKilled kills the host cluster's API server while a CloudSpace comes to be: once with its control plane on the way, once
// with Flux.
func (h *host) apiServerKilled(t *testing.T) {
	g := NewWithT(t)
	h.createTenant(t, "frank")
	for _, phase := range []v1alpha1.CloudSpacePhase{v1alpha1.CloudSpaceProvisioning, v1alpha1.CloudSpaceInstallingFlux} {
		g.Eventually(func(g Gomega) {
			g.Expect(h.cloudSpace(t.Context(), g, "frank", "default").Status.Phase).To(Equal(phase))
		}, provisioning, interval).Should(Succeed())
		hostcluster(t.Context(), t, "restart", "kube-apiserver")
	}
	h.waitForTenant(t, "frank")
	g.Expect(h.cloudSpace(t.Context(), g, "frank", "default").Status.Retry.LastError).To(BeNil())
}
