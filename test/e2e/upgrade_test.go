//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

const (
	current = "v1.36.0"
	// absent is a version whose image is nowhere.
	absent = "v1.35.99"
)

// upgrade moves the platform's default version: first to one that cannot start, which stops the rollout at the first CloudSpace
// and costs nobody anything, then from one minor version to the next, one CloudSpace after the other, with all their data.
func (h *host) upgrade(t *testing.T) {
	g := NewWithT(t)
	previous := os.Getenv("PREVIOUS_KUBERNETES")
	g.Expect(previous).NotTo(BeEmpty(), "PREVIOUS_KUBERNETES is not set: run make test-e2e")
	t.Cleanup(func() { h.offer(context.WithoutCancel(t.Context()), t) })
	ids := []string{"heidi", "ivan"}

	h.offer(t.Context(), t, previous, current)
	for _, id := range ids {
		h.createTenant(t, id)
	}
	inside := map[string]cluster{}
	for _, id := range ids {
		g.Eventually(h.upToDate(t, id), provisioning, interval).Should(Equal(previous))
		inside[id] = openCloudSpace(t, id)
		g.Expect(inside[id].served(g)).To(Equal(previous))
		g.Expect(inside[id].Create(t.Context(), keepsake(id))).To(Succeed())
	}

	h.offer(t.Context(), t, absent, previous, current)
	var failed, waits string
	g.Eventually(func(g Gomega) {
		failed, waits = "", ""
		for _, id := range ids {
			space := h.cloudSpace(t.Context(), g, id, "default")
			switch {
			case meta.IsStatusConditionTrue(space.Status.Conditions, "Stalled"):
				failed = id
				g.Expect(meta.FindStatusCondition(space.Status.Conditions, "Stalled").Reason).To(Equal("ImagePullFailed"))
			case meta.FindStatusCondition(space.Status.Conditions, "UpToDate").Reason == "RolloutStopped":
				waits = id
				g.Expect(meta.IsStatusConditionTrue(space.Status.Conditions, "Ready")).To(BeTrue(), "what waits works on")
			}
			g.Expect(space.Status.Phase).To(BeEquivalentTo("Active"))
		}
		g.Expect([]string{failed, waits}).To(ConsistOf(ids), "one failed, one is not touched")
	}, provisioning, interval).Should(Succeed())
	g.Expect(h.images(t, g, waits)).To(ContainElement(HaveSuffix(":" + previous)))
	for _, id := range ids {
		g.Expect(inside[id].served(g)).To(Equal(previous), "the API server of %s works on", id)
	}

	h.offer(t.Context(), t, current, previous)
	for _, id := range ids {
		g.Eventually(h.upToDate(t, id), provisioning, interval).Should(Equal(current))
		kept := keepsake(id)
		// The node's rules for Services follow the new pod within seconds.
		g.Eventually(func(g Gomega) {
			g.Expect(inside[id].served(g)).To(HavePrefix("v1.36."))
			g.Expect(inside[id].Get(t.Context(), client.ObjectKeyFromObject(kept), kept)).To(Succeed())
		}, short, interval).Should(Succeed())
		g.Expect(kept.Data).To(Equal(keepsake(id).Data))
		g.Expect(phasesOf(h.cloudSpace(t.Context(), g, id, "default"))).To(HaveExactElements("Pending", "Provisioning", "InstallingFlux", "Active"))
	}
	h.removeTenants(t, ids...)
}

// offer installs the platform with these Kubernetes versions, the first one the default; with none as it was. A version that is
// nowhere gets a short deadline.
func (h *host) offer(ctx context.Context, t *testing.T, versions ...string) {
	t.Helper()
	h.configure(ctx, t, func(config *configv1alpha1.PlatformConfig) {
		if len(versions) == 0 {
			return
		}
		known := config.Kubernetes[0]
		config.Kubernetes = nil
		for _, version := range versions {
			known.Version = version
			config.Kubernetes = append(config.Kubernetes, known)
		}
		if versions[0] == absent {
			config.Deadlines.ControlPlane.Duration = 40 * time.Second
		}
	})
}

// upToDate gives the version of a CloudSpace that is ready and all that is asked for, or nothing.
func (h *host) upToDate(t *testing.T, id string) func(Gomega) string {
	t.Helper()
	return func(g Gomega) string {
		space := h.cloudSpace(t.Context(), g, id, "default")
		for _, condition := range []string{"Ready", "UpToDate"} {
			if !meta.IsStatusConditionTrue(space.Status.Conditions, condition) {
				return ""
			}
		}
		return space.Status.Versions.Kubernetes
	}
}

// images are those that the control plane of a tenant's default CloudSpace is made of.
func (h *host) images(t *testing.T, g Gomega, id string) (images []string) {
	t.Helper()
	server := &appsv1.Deployment{}
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "vcluster-" + id, Name: id}, server)).To(Succeed())
	for _, container := range slices.Concat(server.Spec.Template.Spec.InitContainers, server.Spec.Template.Spec.Containers) {
		images = append(images, container.Image)
	}
	return images
}

// served is the version that an API server says it is.
func (c cluster) served(g Gomega) string {
	info, err := c.Discovery().ServerVersion()
	g.Expect(err).NotTo(HaveOccurred())
	return info.GitVersion
}

func keepsake(id string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "keepsake", Namespace: "default"}, Data: map[string]string{"of": id}}
}

func phasesOf(space *v1alpha1.CloudSpace) (phases []string) {
	for _, entry := range space.Status.Timeline {
		phases = append(phases, entry.Phase)
	}
	return phases
}
