//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// controlPlaneKilled kills the API server and then etcd of a CloudSpace that runs. Each time it says so, comes back by itself, and
// has its data. Its certificates are renewed after that.
func (h *host) controlPlaneKilled(t *testing.T) {
	t.Parallel()
	inside := openCloudSpace(t, "alice-default")
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}, Data: map[string]string{"written": "before"}}
	NewWithT(t).Expect(inside.Create(t.Context(), kept)).To(Succeed())
	for _, part := range []struct{ name, label string }{{"API server", "vcluster"}, {"etcd", "vcluster-etcd"}} {
		h.recovers(t, part.name, func() {
			h.killPods(t, client.InNamespace("vcluster-alice-default"), client.MatchingLabels{"app": part.label, "release": "alice-default"})
		})
		NewWithT(t).Eventually(func(g Gomega) {
			var found corev1.ConfigMap
			g.Expect(inside.Get(t.Context(), client.ObjectKeyFromObject(kept), &found)).To(Succeed())
			g.Expect(found.Data).To(Equal(kept.Data))
		}, short, interval).Should(Succeed(), "after the %s was killed", part.name)
	}
	t.Run("renewed certificates reach the kubeconfigs", h.certificatesRenewed)
}

// recovers breaks a part of CloudSpace default of alice-default, and follows it through the outage.
func (h *host) recovers(t *testing.T, part string, broken func()) {
	t.Helper()
	degraded := false
	h.follow(t, &v1alpha1.CloudSpaceList{}, broken, func(event watch.Event) bool {
		cloudSpace, ok := event.Object.(*v1alpha1.CloudSpace)
		if !ok {
			return false
		}
		g := NewWithT(t)
		g.Expect(cloudSpace.Status.Phase).To(Equal(v1alpha1.CloudSpaceActive), "an outage is no other phase")
		ready := meta.FindStatusCondition(cloudSpace.Status.Conditions, v1alpha1.ConditionReady)
		if ready.Status == metav1.ConditionFalse {
			g.Expect(ready.Reason).To(Equal(v1alpha1.ReasonDegraded))
			g.Expect(degraded || ready.Message == "waiting for "+partInWords[part]).To(BeTrue(), "the %s was killed: %s", part, ready.Message)
			degraded = true
		}
		return degraded && ready.Status == metav1.ConditionTrue
	}, client.InNamespace("tenant-alice-default"), named("default"))
}

var partInWords = map[string]string{
	"API server": "the API server of the control plane",
	"etcd":       "etcd of the control plane",
}
