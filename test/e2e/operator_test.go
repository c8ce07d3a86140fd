//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// operatorPods selects the operator's.
var operatorPods = client.MatchingLabels{"app.kubernetes.io/name": "tenant-controller"}

// takeover is how long it may take until another operator has taken over one that is cut off: the lease's 15 s, and the time
// between two looks at it, on a busy machine.
const takeover = 30 * time.Second

// operatorKilled kills the operator each time that one CloudSpace on its way up, or another on its way down, has got on by a step.
func (h *host) operatorKilled(t *testing.T) {
	reached := map[string]bool{}
	begin := func() {
		h.deleteTenant(t, "erin")
		h.createTenant(t, "grace")
	}
	h.follow(t, &v1alpha1.CloudSpaceList{}, begin, func(event watch.Event) bool {
		cloudSpace, ok := event.Object.(*v1alpha1.CloudSpace)
		if !ok || cloudSpace.Namespace != "tenant-erin" && cloudSpace.Namespace != "tenant-grace" {
			return false
		}
		at := cloudSpace.Namespace + " " + progress(event.Type, cloudSpace)
		if !reached[at] {
			reached[at] = true
			h.killPods(t, client.InNamespace("kubeopera-system"), operatorPods)
		}
		return reached["tenant-erin gone"] && reached["tenant-grace Active"]
	})
	t.Logf("killed %d times: %v", len(reached), slices.Sorted(maps.Keys(reached)))
	// Others may pass while no operator runs: Flux goes on with what the one before asked of it.
	for _, at := range []string{"tenant-grace ControlPlaneReady", "tenant-erin RemoveNamespace"} {
		NewWithT(t).Expect(reached).To(HaveKey(at))
	}
	NewWithT(t).Expect(len(reached)).To(BeNumerically(">=", 6), "steps at which the operator was killed")
	h.waitUntilGone(t, "erin")
	h.nothingLeft(t, "erin")
	h.waitForTenant(t, "grace")
}

// progress names the step that a CloudSpace is at, on its way up or down.
func progress(kind watch.EventType, cloudSpace *v1alpha1.CloudSpace) string {
	if kind == watch.Deleted {
		return "gone"
	}
	if len(cloudSpace.Status.Deletion) > 0 {
		return waitingStep(cloudSpace).Step
	}
	for _, condition := range cloudSpace.Status.Conditions {
		if condition.Status != metav1.ConditionTrue && condition.Type != v1alpha1.ConditionReady && condition.Type != v1alpha1.ConditionAdvisorReady {
			return condition.Type
		}
	}
	return string(cloudSpace.Status.Phase)
}

// leaderCutOff takes the network from the operator that leads. It ends, and the one beside it takes over what was begun.
func (h *host) leaderCutOff(t *testing.T) {
	g := NewWithT(t)
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "tenant-controller", Namespace: "kubeopera-system"}}
	h.scale(t.Context(), t, operator, 2)
	t.Cleanup(func() { h.scale(context.WithoutCancel(t.Context()), t, operator, 1) })
	var leader *corev1.Pod
	g.Eventually(func(g Gomega) {
		g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(operator), operator)).To(Succeed())
		g.Expect(operator.Status.ReadyReplicas).To(BeEquivalentTo(2))
		leader = h.leader(t, g)
	}, provisioning, interval).Should(Succeed())

	h.cutOff(t, leader.Status.PodIP)
	h.deleteTenant(t, "frank")
	g.Eventually(func(g Gomega) {
		g.Expect(h.leader(t, g).UID).NotTo(Equal(leader.UID))
	}, takeover, interval).Should(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(leader), leader)).To(Succeed())
		g.Expect(leader.Status.ContainerStatuses).To(HaveLen(1))
		g.Expect(leader.Status.ContainerStatuses[0].RestartCount).To(BeNumerically(">", 0), "what lost the lease must not go on")
	}, takeover, interval).Should(Succeed())
	h.waitUntilGone(t, "frank")
}

// leader is the operator's pod that holds the lease.
func (h *host) leader(t *testing.T, g Gomega) *corev1.Pod {
	t.Helper()
	var lease coordinationv1.Lease
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kubeopera-system", Name: "tenant-controller"}, &lease)).To(Succeed())
	g.Expect(lease.Spec.HolderIdentity).NotTo(BeNil())
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	var pod corev1.Pod
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: lease.Namespace, Name: name}, &pod)).To(Succeed())
	return &pod
}

// cutOff drops what a pod sends, also over connections that it has, until the test ends. A NetworkPolicy would let those be.
func (h *host) cutOff(t *testing.T, podIP string) {
	t.Helper()
	rule := []string{"PREROUTING", "--source", podIP, "--jump", "DROP"}
	h.onNode(t.Context(), t, append([]string{"iptables", "--table", "raw", "--append"}, rule...)...)
	t.Cleanup(func() {
		h.onNode(context.WithoutCancel(t.Context()), t, append([]string{"iptables", "--table", "raw", "--delete"}, rule...)...)
	})
}
