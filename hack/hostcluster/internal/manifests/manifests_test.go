// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/toolchain"
)

// podTemplates returns the Deployments among the objects.
func podTemplates(t *testing.T) map[string]corev1.PodSpec {
	t.Helper()
	objects, err := Objects()
	if err != nil {
		t.Fatal(err)
	}
	specs := map[string]corev1.PodSpec{}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		var deployment appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &deployment, true); err != nil {
			t.Fatalf("%s: %v", object.GetName(), err)
		}
		specs[deployment.Name] = deployment.Spec.Template.Spec
	}
	return specs
}

func TestEveryDeploymentThatIsWaitedForIsMade(t *testing.T) {
	specs := podTemplates(t)
	waited := 0
	for _, names := range deployments() {
		for _, name := range names {
			waited++
			if _, ok := specs[name]; !ok {
				t.Errorf("%s is waited for but not made", name)
			}
		}
	}
	if waited != len(specs) {
		t.Errorf("%d deployments are waited for, %d made", waited, len(specs))
	}
}

func TestPodsNeedNothingFromOutside(t *testing.T) {
	var held []string
	for _, archive := range (toolchain.Cache{}).Archives() {
		held = append(held, archive.Ref)
	}
	for name, spec := range podTemplates(t) {
		for _, container := range spec.Containers {
			if !slices.Contains(held, container.Image) {
				t.Errorf("%s runs %s, which no archive holds", name, container.Image)
			}
			if container.ImagePullPolicy != corev1.PullIfNotPresent {
				t.Errorf("%s pulls %q", name, container.ImagePullPolicy)
			}
			if container.Resources.Requests.Cpu().IsZero() || container.Resources.Requests.Memory().IsZero() {
				t.Errorf("%s requests %v", name, container.Resources.Requests)
			}
		}
	}
}

// cluster is one in which all is ready at the time given, changed by change.
func cluster(at time.Time, change func(objects []runtime.Object)) *fake.Clientset {
	renewed := metav1.NewMicroTime(at)
	objects := []runtime.Object{
		&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "node", Namespace: corev1.NamespaceNodeLease},
			Spec:       coordinationv1.LeaseSpec{RenewTime: &renewed},
		},
	}
	for namespace, names := range deployments() {
		for _, name := range names {
			labels := map[string]string{"app": name}
			objects = append(objects,
				&appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
					Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}},
					Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
						{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
					}},
				},
				&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
					Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
						Ready: true,
						State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(at)}},
					}}},
				})
		}
	}
	change(objects)
	return fake.NewClientset(objects...)
}

// forEach changes every object of one kind.
func forEach[T runtime.Object](objects []runtime.Object, change func(T)) {
	for _, object := range objects {
		if found, ok := object.(T); ok {
			change(found)
		}
	}
}

func TestMissing(t *testing.T) {
	started := time.Unix(1000, 999)
	all := []string{"coredns", "helm-controller", "kustomize-controller", "node", "source-controller"}
	nothing := func([]runtime.Object) {}
	for _, test := range []struct {
		name   string
		at     time.Time
		change func([]runtime.Object)
		want   []string
	}{
		{"all is ready", started.Add(time.Second), nothing, nil},
		{"all is ready within the second of the start", started.Truncate(time.Second), nothing, nil},
		{"all was ready before the start only", started.Add(-time.Second), nothing, all},
		{"the node is not ready", started.Add(time.Second), func(objects []runtime.Object) {
			forEach(objects, func(node *corev1.Node) { node.Status.Conditions[0].Status = corev1.ConditionFalse })
		}, []string{"node"}},
		{"a rollout goes on", started.Add(time.Second), func(objects []runtime.Object) {
			forEach(objects, func(deployment *appsv1.Deployment) {
				if deployment.Name == "helm-controller" {
					deployment.Generation = 2
				}
			})
		}, []string{"helm-controller"}},
		{"a container is not ready", started.Add(time.Second), func(objects []runtime.Object) {
			forEach(objects, func(pod *corev1.Pod) {
				if pod.Name == "coredns" {
					pod.Status.ContainerStatuses[0].Ready = false
				}
			})
		}, []string{"coredns"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Missing(t.Context(), cluster(test.at, test.change), "node", started)
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("missing %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestEverythingIsMissingFromAnEmptyCluster(t *testing.T) {
	got, err := Missing(t.Context(), fake.NewClientset(), "node", time.Unix(1000, 0))
	if err != nil || len(got) != 5 {
		t.Errorf("missing %q, %v, want all five", got, err)
	}
}
