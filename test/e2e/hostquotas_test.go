//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

const (
	measured     = "bob-default"
	measuredHost = "vcluster-" + measured
)

// quotas has one CloudSpace used up, resized and suspended, all of which its quotas see.
func (h *host) quotas(t *testing.T) {
	inside := openCloudSpace(t, measured)
	t.Run("whatever a pod says of its resources is counted, or refused", func(t *testing.T) { h.podsAreCounted(t, inside) })
	t.Run("workloads cannot take the room of their control plane", func(t *testing.T) { h.filledUp(t, inside) })
	t.Run("what is lowered follows as the use ends", func(t *testing.T) { h.resized(t, inside) })
	t.Run("a suspended CloudSpace comes back with its data", func(t *testing.T) { h.suspended(t, inside) })
}

// amounts are requests and limits of a container.
func amounts(requestCPU, requestMemory, limitCPU, limitMemory string) corev1.ResourceRequirements {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	return corev1.ResourceRequirements{Requests: list(requestCPU, requestMemory), Limits: list(limitCPU, limitMemory)}
}

// sleeper is a pod of one container that does nothing.
func sleeper(name string, alter func(*corev1.PodSpec)) *corev1.Pod {
	pod := probePod(name, "/bin/sh", "-c", "sleep 3600")
	now := int64(0)
	pod.Spec.TerminationGracePeriodSeconds = &now
	alter(&pod.Spec)
	return pod
}

// used is what the quota of workloads counts: requests of CPU in thousandths, requests of memory in Mi, limits of CPU, limits of memory, and pods.
func (h *host) used(ctx context.Context, g Gomega) [5]int64 {
	var quota corev1.ResourceQuota
	g.Expect(h.Get(ctx, client.ObjectKey{Namespace: measuredHost, Name: "cloudspace-workload"}, &quota)).To(Succeed())
	value := func(name corev1.ResourceName) int64 { q := quota.Status.Used[name]; return q.Value() }
	milli := func(name corev1.ResourceName) int64 { q := quota.Status.Used[name]; return q.MilliValue() }
	return [5]int64{milli("requests.cpu"), value("requests.memory") >> 20, milli("limits.cpu"), value("limits.memory") >> 20, value("pods")}
}

// podsAreCounted runs pods that say what they need in each of the ways that there are.
func (h *host) podsAreCounted(t *testing.T, inside cluster) {
	t.Helper()
	g := NewWithT(t)
	always := corev1.ContainerRestartPolicyAlways
	probe := func(name string, resources corev1.ResourceRequirements) corev1.Container {
		return corev1.Container{Name: name, Image: probeImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/bin/sh", "-c", "sleep 3600"}, Resources: resources}
	}
	brief := probe("brief", amounts("200m", "128Mi", "400m", "256Mi"))
	brief.Command = []string{"/bin/sh", "-c", "true"}
	beside := probe("beside", amounts("30m", "32Mi", "60m", "64Mi"))
	beside.RestartPolicy = &always
	own := amounts("100m", "64Mi", "600m", "300Mi")
	idle := h.used(t.Context(), g)
	tests := []struct {
		what  string
		alter func(*corev1.PodSpec)
		want  [5]int64
	}{
		{"nothing", func(*corev1.PodSpec) {}, [5]int64{50, 64, 500, 256, 1}},
		{"a larger init container", func(s *corev1.PodSpec) {
			s.InitContainers, s.Containers[0].Resources = []corev1.Container{brief}, amounts("20m", "32Mi", "100m", "64Mi")
		}, [5]int64{200, 128, 400, 256, 1}},
		{"a sidecar", func(s *corev1.PodSpec) {
			s.InitContainers, s.Containers[0].Resources = []corev1.Container{beside}, amounts("20m", "32Mi", "100m", "64Mi")
		}, [5]int64{50, 64, 160, 128, 1}},
		{"the pod itself", func(s *corev1.PodSpec) { s.Resources = &own }, [5]int64{100, 64, 600, 300, 1}},
		{"the pod itself, of memory alone", func(s *corev1.PodSpec) {
			s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}}
		}, [5]int64{50, 512, 500, 512, 1}},
	}
	for _, tt := range tests {
		pod := sleeper("counted", tt.alter)
		g.Expect(inside.Create(t.Context(), pod)).To(Succeed())
		h.uses(t, "a pod that says "+tt.what, idle, tt.want)
		g.Expect(inside.Delete(t.Context(), pod)).To(Succeed())
		h.uses(t, "none", idle, [5]int64{})
	}
	h.overheadIsCounted(t, inside, idle)
	h.changedPodsAreCounted(t, inside, idle)
}

// uses waits until so much more is counted than before.
func (h *host) uses(t *testing.T, what string, before, more [5]int64) {
	t.Helper()
	for i := range before {
		before[i] += more[i]
	}
	NewWithT(t).Eventually(func(g Gomega) [5]int64 { return h.used(t.Context(), g) }, short, interval).Should(Equal(before), what)
}

// overheadIsCounted shows a RuntimeClass of the CloudSpace's own, which the host does not know, and one that the host has.
func (h *host) overheadIsCounted(t *testing.T, inside cluster, idle [5]int64) {
	t.Helper()
	g := NewWithT(t)
	heavy := func() *nodev1.RuntimeClass {
		return &nodev1.RuntimeClass{
			ObjectMeta: metav1.ObjectMeta{Name: "heavy"}, Handler: "runc",
			Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("70m"), corev1.ResourceMemory: resource.MustParse("10Mi")}},
		}
	}
	g.Expect(inside.Create(t.Context(), heavy())).To(Succeed())
	pod := sleeper("counted", func(s *corev1.PodSpec) { s.RuntimeClassName = &heavy().Name })
	g.Expect(inside.Create(t.Context(), pod)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(inside.eventsOf(t, g, "counted")).To(ContainElement(ContainSubstring("RuntimeClass")))
	}, short, interval).Should(Succeed(), "a pod with a RuntimeClass that the host does not have is refused there")
	g.Expect(h.used(t.Context(), g)).To(Equal(idle))
	g.Expect(h.Create(t.Context(), heavy())).To(Succeed())
	t.Cleanup(func() { _ = h.Delete(context.WithoutCancel(t.Context()), heavy()) })
	h.uses(t, "a pod with the overhead of its RuntimeClass", idle, [5]int64{120, 74, 570, 266, 1})
	g.Expect(inside.Delete(t.Context(), pod)).To(Succeed())
	h.uses(t, "none", idle, [5]int64{})
}

// changedPodsAreCounted gives a pod that runs an ephemeral container, then more CPU, then more than there is.
func (h *host) changedPodsAreCounted(t *testing.T, inside cluster, idle [5]int64) {
	t.Helper()
	g := NewWithT(t)
	pod := sleeper("counted", func(s *corev1.PodSpec) { s.Containers[0].Resources = amounts("20m", "32Mi", "100m", "64Mi") })
	g.Expect(inside.Create(t.Context(), pod)).To(Succeed())
	inside.waitForPod(t, "counted")
	asMade := [5]int64{20, 32, 100, 64, 1}
	h.uses(t, "a pod", idle, asMade)

	g.Expect(inside.Get(t.Context(), client.ObjectKeyFromObject(pod), pod)).To(Succeed())
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
		Name: "look", Image: probeImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/bin/sh", "-c", "sleep 3600"},
	}}}
	_, err := inside.CoreV1().Pods("default").UpdateEphemeralContainers(t.Context(), pod.Name, pod, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		var found corev1.Pod
		g.Expect(inside.Get(t.Context(), client.ObjectKeyFromObject(pod), &found)).To(Succeed())
		g.Expect(found.Status.EphemeralContainerStatuses).To(HaveLen(1))
		g.Expect(found.Status.EphemeralContainerStatuses[0].State.Running).NotTo(BeNil())
	}, short, interval).Should(Succeed())
	h.uses(t, "a pod with an ephemeral container, which lives within its limits", idle, asMade)

	g.Expect(inside.resize(t, "counted", amounts("120m", "32Mi", "400m", "64Mi"))).To(Succeed())
	h.uses(t, "a pod that was resized in place", idle, [5]int64{120, 32, 400, 64, 1})
	g.Expect(inside.resize(t, "counted", amounts("120m", "32Mi", "64", "64Mi"))).To(Succeed(), "inside nobody knows of the quota")
	g.Eventually(func(g Gomega) {
		g.Expect(inside.eventsOf(t, g, "counted")).To(ContainElement(Or(ContainSubstring("exceeded quota"), ContainSubstring("maximum cpu usage"))))
	}, short, interval).Should(Succeed(), "that it cannot be is said")
	h.uses(t, "a pod that was to have more than there is", idle, [5]int64{120, 32, 400, 64, 1})
	g.Expect(inside.Delete(t.Context(), pod)).To(Succeed())
	h.uses(t, "none", idle, [5]int64{})
}

// resize gives the container of a pod other resources while it runs.
func (c cluster) resize(t *testing.T, name string, resources corev1.ResourceRequirements) error {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "probe", "resources": resources}}}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	_, err = c.CoreV1().Pods("default").Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
	return err
}

// eventsOf are the messages about a pod.
func (c cluster) eventsOf(t *testing.T, g Gomega, pod string) (messages []string) {
	t.Helper()
	events, err := c.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	g.Expect(err).NotTo(HaveOccurred())
	for i := range events.Items {
		messages = append(messages, events.Items[i].Message)
	}
	return messages
}

// filledUp has workloads use all that they can. The control plane is lost and comes back: what workloads cannot have was kept for it.
func (h *host) filledUp(t *testing.T, inside cluster) {
	t.Helper()
	g := NewWithT(t)
	var quota corev1.ResourceQuota
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: measuredHost, Name: "cloudspace-workload"}, &quota)).To(Succeed())
	free := map[corev1.ResourceName]string{}
	for name, hard := range quota.Status.Hard {
		hard.Sub(quota.Status.Used[name])
		free[name] = hard.String()
	}
	filler := sleeper("filler", func(s *corev1.PodSpec) {
		s.Containers[0].Resources = amounts("10m", free["requests.memory"], free["limits.cpu"], free["limits.memory"])
	})
	g.Expect(inside.Create(t.Context(), filler)).To(Succeed())
	inside.waitForPod(t, "filler")
	h.killPods(t, client.InNamespace(measuredHost), client.MatchingLabels{"app": "vcluster"})
	more := sleeper("more", func(*corev1.PodSpec) {})
	g.Eventually(func() error {
		// The one that is killed may have made it, and died before it said so.
		return client.IgnoreAlreadyExists(inside.Create(t.Context(), more.DeepCopy()))
	}, short, interval).Should(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(inside.eventsOf(t, g, "more")).To(ContainElement(ContainSubstring("exceeded quota: cloudspace-workload")))
	}, short, interval).Should(Succeed(), "there is no room for another pod")
	h.waitForCloudSpace(t, "tenant-"+measured, "default")
	g.Expect(inside.Delete(t.Context(), more)).To(Succeed())
	h.usageIsTold(t)
}

// usageIsTold waits until the status says what the quotas say.
func (h *host) usageIsTold(t *testing.T) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		told := h.cloudSpace(t.Context(), g, measured, "default").Status.Resources
		used := h.used(t.Context(), g)
		g.Expect([]int64{told.CPU.Workloads.MilliValue(), told.Memory.Workloads.Value() >> 20, told.Pods.Workloads.Value()}).To(Equal([]int64{used[0], used[1], used[4]}))
		g.Expect(told.Memory.Free.Value()).To(BeZero())
		g.Expect(told.Storage.ControlPlane.String()).To(Equal("2Gi"))
	}, short, interval).Should(Succeed())
}

// resized lowers a CloudSpace below what its pods use, which the filler of filledUp sees to, and ends that.
func (h *host) resized(t *testing.T, inside cluster) {
	t.Helper()
	g := NewWithT(t)
	const memory = corev1.ResourceRequestsMemory
	before := h.cloudSpace(t.Context(), g, measured, "default").Spec.Resources.Memory
	h.ask(t, "3Gi")
	g.Eventually(h.policies(t), short, interval).Should(HavePrefix("False ResizeBlocked memory cannot be lowered to 3Gi yet: workloads use "))
	space := h.cloudSpace(t.Context(), g, measured, "default")
	g.Expect(meta.IsStatusConditionTrue(space.Status.Conditions, "Ready")).To(BeTrue(), "it works on")
	g.Expect(h.total(t.Context(), g).Spec.Hard[memory]).To(BeComparableTo(before), "nothing of it is free")
	g.Expect(inside.Delete(t.Context(), sleeper("filler", func(*corev1.PodSpec) {}))).To(Succeed())
	h.follows(t, "3Gi")
	h.ask(t, before.String())
	h.follows(t, before.String())
	h.ask(t, "1Gi")
	g.Eventually(func(g Gomega) {
		upToDate := meta.FindStatusCondition(h.cloudSpace(t.Context(), g, measured, "default").Status.Conditions, "UpToDate")
		g.Expect(upToDate.Reason).To(Equal("ResourcesTooSmall"))
	}, short, interval).Should(Succeed())
	g.Expect(h.total(t.Context(), g).Spec.Hard[memory]).To(BeComparableTo(before), "what is too little changes nothing")
	h.ask(t, before.String())
	h.follows(t, before.String())
}

func (h *host) ask(t *testing.T, memory string) {
	t.Helper()
	space := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-" + measured, Name: "default"}}
	patch := fmt.Appendf(nil, `{"spec":{"resources":{"memory":%q}}}`, memory)
	NewWithT(t).Expect(h.Patch(t.Context(), space, client.RawPatch(types.MergePatchType, patch))).To(Succeed())
}

func (h *host) total(ctx context.Context, g Gomega) *corev1.ResourceQuota {
	var quota corev1.ResourceQuota
	g.Expect(h.Get(ctx, client.ObjectKey{Namespace: measuredHost, Name: "cloudspace"}, &quota)).To(Succeed())
	return &quota
}

// follows waits until the quotas follow the spec, with so much memory, and the CloudSpace is ready.
func (h *host) follows(t *testing.T, memory string) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		space, total := h.cloudSpace(t.Context(), g, measured, "default"), h.total(t.Context(), g)
		g.Expect(total.Status.Hard[corev1.ResourceRequestsMemory]).To(BeComparableTo(resource.MustParse(memory)))
		g.Expect(total.Annotations).To(HaveKeyWithValue("tenancy.kubeopera.io/generation", strconv.FormatInt(space.Generation, 10)))
		g.Expect(meta.IsStatusConditionTrue(space.Status.Conditions, "PoliciesApplied")).To(BeTrue())
		g.Expect(meta.IsStatusConditionTrue(space.Status.Conditions, "Ready")).To(BeTrue())
	}, short, interval).Should(Succeed())
}

// policies is what PoliciesApplied says.
func (h *host) policies(t *testing.T) func(Gomega) string {
	t.Helper()
	return func(g Gomega) string {
		c := meta.FindStatusCondition(h.cloudSpace(t.Context(), g, measured, "default").Status.Conditions, "PoliciesApplied")
		return fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message)
	}
}
