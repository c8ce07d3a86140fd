// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"errors"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/step"
)

// podWorld is an API server with pods on it that notes what it is asked. What is looked at comes from its live side, what is
// deleted goes through the other.
type podWorld struct {
	looks   int
	deleted []string
	// events are what happened in the host namespaces.
	events []corev1.Event
	// fluxAsked counts how often Flux was asked to look.
	fluxAsked int
	// withoutConfig is a host namespace in which the Secret with the configuration is gone.
	withoutConfig bool
	// fails makes the look or the deletion fail.
	failsLook, failsDelete error
}

func (w *podWorld) reconciler(pods ...corev1.Pod) *Reconciler {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(helmv2.AddToScheme(scheme))
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithIndex(&corev1.Event{}, "involvedObject.kind", func(o client.Object) []string { return []string{o.(*corev1.Event).InvolvedObject.Kind} }).
		WithIndex(&corev1.Secret{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithObjects(startingRelease())
	if !w.withoutConfig {
		builder = builder.WithObjects(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "vcluster-alice-default", Name: "vc-config-alice-default"}})
	}
	for i := range w.events {
		builder = builder.WithObjects(&w.events[i])
	}
	for i := range pods {
		builder = builder.WithObjects(&pods[i])
	}
	server := builder.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*corev1.PodList); ok {
				w.looks++
			}
			if w.failsLook != nil {
				return w.failsLook
			}
			return c.List(ctx, list, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			w.fluxAsked++
			return c.Patch(ctx, o, p, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if w.failsDelete != nil {
				return w.failsDelete
			}
			w.deleted = append(w.deleted, o.GetNamespace()+"/"+o.GetName())
			return c.Delete(ctx, o, options...)
		},
	}).Build()
	return &Reconciler{Applier: apply.Applier{Client: server, Live: server, Memory: apply.NewMemory()}, Clock: clocktesting.NewFakePassiveClock(noon), Recorder: events.NewFakeRecorder(10)}
}

// startingRelease is the release of a control plane that was installed, and of which Flux was not asked anything yet.
func startingRelease() *helmv2.HelmRelease {
	return &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeopera-system", Name: "alice-default"}}
}

// starting is a pass over a CloudSpace whose control plane has been starting for a while, and whose API server does not run.
func starting(since time.Duration) *scope {
	object := testCloudSpace("default")
	object.Status.Conditions = []metav1.Condition{
		{Type: "ControlPlaneReady", Status: metav1.ConditionFalse, Reason: "Starting", LastTransitionTime: metav1.NewTime(noon.Add(-since))},
	}
	s := grantedScope(object)
	s.now, s.token = noon, "now"
	s.observed.controlPlane = startingRelease()
	s.observed.etcd = runningEtcd()
	s.observed.apiServer = runningAPIServer(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 })
	return s
}

// ofTenant makes a pod one that the tenant runs, and elsewhere one of another host namespace.
func ofTenant(p corev1.Pod) corev1.Pod {
	p.Spec.PriorityClassName = "cloudspace-workload"
	return p
}

func elsewhere(p corev1.Pod) corev1.Pod {
	p.Namespace = "vcluster-bob-default"
	return p
}

func unclassed(p corev1.Pod) corev1.Pod {
	p.Spec.PriorityClassName = ""
	return p
}

func TestAControlPlaneThatDoesNotStartIsLookedAt(t *testing.T) {
	const waits = "waiting for the API server of the control plane"
	crashing := endedAs("OOMKilled", 137, "")
	const found = "the control plane does not start: container syncer needs more memory than its limit"
	tests := map[string]struct {
		pods     []corev1.Pod
		scope    *scope
		retryNow bool
		world    podWorld
		// No reason means that it runs; wantFails is the error of a call.
		wantReason, wantMessage string
		wantFails               error
		wantLooks               int
		wantDeleted             []string
		wantFluxAsked           int
	}{
		"it runs: nobody looks": {
			scope: func() *scope {
				s := starting(time.Hour)
				s.observed.apiServer = runningAPIServer()
				return s
			}(),
			pods: []corev1.Pod{pod("api", crashing)},
		},
		"in the first pass nobody looks": {
			scope: func() *scope {
				s := starting(time.Hour)
				s.object.Status.Conditions = nil
				return s
			}(),
			pods: []corev1.Pod{pod("api", crashing)}, wantReason: "Starting", wantMessage: waits,
		},
		"just before patience ends nobody looks": {
			scope: starting(10*time.Second - time.Nanosecond), pods: []corev1.Pod{pod("api", crashing)}, wantReason: "Starting", wantMessage: waits,
		},
		"it ran until now: nobody looks yet": {
			scope: func() *scope {
				s := starting(time.Hour)
				s.object.Status.Conditions[0].Status = metav1.ConditionTrue
				return s
			}(),
			pods: []corev1.Pod{pod("api", crashing)}, wantReason: "Starting", wantMessage: waits,
		},
		"when patience ends the pods are looked at": {
			scope: starting(10 * time.Second), pods: []corev1.Pod{pod("api", crashing)},
			wantReason: "OutOfMemory", wantMessage: found, wantLooks: 1,
		},
		"nothing is wrong with them": {
			scope: starting(time.Minute), pods: []corev1.Pod{pod("api", waiting("ContainerCreating", ""))},
			wantReason: "Starting", wantMessage: waits, wantLooks: 1,
		},
		"there are none": {scope: starting(time.Minute), wantReason: "Starting", wantMessage: waits, wantLooks: 1},
		"etcd does not start": {
			scope: func() *scope {
				s := starting(time.Minute)
				s.observed.etcd = nil
				return s
			}(),
			pods:       []corev1.Pod{unplaced("etcd", "Unschedulable")},
			wantReason: "Unschedulable", wantMessage: "the control plane does not start: 0/3 nodes are available: 3 Insufficient memory.", wantLooks: 1,
		},
		"its pods may not be made": {
			scope: func() *scope {
				s := starting(time.Minute)
				refusing(s.observed.apiServer)
				return s
			}(),
			wantReason: "PodsRefused", wantMessage: "the control plane does not start: exceeded quota: cloudspace", wantLooks: 1,
		},
		"the pods of etcd may not be made": {
			scope: func() *scope {
				s := starting(time.Minute)
				s.observed.etcd.Status.Replicas = 0
				return s
			}(),
			world:      podWorld{events: []corev1.Event{warning("StatefulSet", "alice-default-etcd", "FailedCreate", refusedPod, 0)}},
			wantReason: "PodsRefused", wantMessage: "the control plane does not start: " + refusedPod, wantLooks: 1,
		},
		"they were refused before, and are there now": {
			scope: starting(time.Minute), world: podWorld{events: []corev1.Event{warning("StatefulSet", "alice-default-etcd", "FailedCreate", refusedPod, 0)}},
			wantReason: "Starting", wantMessage: waits, wantLooks: 1,
		},
		"etcd has no volume": {
			scope: starting(time.Minute), pods: []corev1.Pod{func() corev1.Pod {
				p := unplaced("etcd", "Unschedulable")
				p.Status.Conditions[1].Message = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
				return p
			}()},
			world:      podWorld{events: []corev1.Event{warning("PersistentVolumeClaim", "data-alice-default-etcd-0", "ProvisioningFailed", noClass, 0)}},
			wantReason: "VolumeFailed", wantMessage: "the control plane does not start: volume data-alice-default-etcd-0: " + noClass, wantLooks: 1,
		},
		"its configuration is gone: Flux is asked to make it again": {
			scope: starting(time.Minute), world: podWorld{withoutConfig: true}, wantReason: "Starting", wantMessage: waits, wantLooks: 1, wantFluxAsked: 1,
		},
		"what the tenant runs is not looked at": {
			scope: starting(time.Minute), pods: []corev1.Pod{ofTenant(pod("app", crashing)), ofTenant(unplaced("more", "Unschedulable"))},
			wantReason: "Starting", wantMessage: waits, wantLooks: 1,
		},
		"a pod of nobody knows whom is not looked at": {
			scope: starting(time.Minute), pods: []corev1.Pod{unclassed(pod("x", crashing))}, wantReason: "Starting", wantMessage: waits, wantLooks: 1,
		},
		"what is elsewhere is not looked at": {
			scope: starting(time.Minute), pods: []corev1.Pod{elsewhere(pod("api", crashing))}, wantReason: "Starting", wantMessage: waits, wantLooks: 1,
		},
		"the pods cannot be read": {
			scope: starting(time.Minute), world: podWorld{failsLook: errBoom}, wantFails: errBoom, wantLooks: 1,
		},

		"a retry begins the stuck pod anew, and no other": {
			scope: starting(time.Minute), retryNow: true,
			pods: []corev1.Pod{
				ofTenant(pod("a-tenants", crashing)), unclassed(pod("b-nobodys", crashing)), elsewhere(pod("api", crashing)),
				pod("etcd", running()), pod("syncer", crashing),
			},
			wantReason: "OutOfMemory", wantMessage: found, wantLooks: 1, wantDeleted: []string{"vcluster-alice-default/syncer"},
		},
		"a retry before patience ends begins nothing anew": {
			scope: starting(time.Second), retryNow: true, pods: []corev1.Pod{pod("api", crashing)}, wantReason: "Starting", wantMessage: waits,
		},
		"a retry never touches what the tenant runs": {
			scope: starting(time.Minute), retryNow: true, pods: []corev1.Pod{ofTenant(pod("app", crashing))}, wantReason: "Starting", wantMessage: waits, wantLooks: 1,
		},
		"a retry does not help a pod without a node": {
			scope: starting(time.Minute), retryNow: true, pods: []corev1.Pod{unplaced("api", "Unschedulable")},
			wantReason: "Unschedulable", wantMessage: "the control plane does not start: 0/3 nodes are available: 3 Insufficient memory.", wantLooks: 1,
		},
		"a retry leaves alone what is being started": {
			scope: starting(time.Minute), retryNow: true, pods: []corev1.Pod{pod("api", waiting("ContainerCreating", ""))},
			wantReason: "Starting", wantMessage: waits, wantLooks: 1,
		},
		"a retry leaves alone what is on its way out": {
			scope: starting(time.Minute), retryNow: true,
			pods: []corev1.Pod{func() corev1.Pod {
				p := pod("api", crashing)
				p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: noon}, []string{"example.com/hold"}
				return p
			}()},
			wantReason: "OutOfMemory", wantMessage: found, wantLooks: 1,
		},
		"the stuck pod cannot be deleted": {
			scope: starting(time.Minute), retryNow: true, pods: []corev1.Pod{pod("api", crashing)},
			world: podWorld{failsDelete: errBoom}, wantFails: errBoom, wantLooks: 1,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			world := tt.world
			tt.scope.retryNow = tt.retryNow
			err := world.reconciler(tt.pods...).controlPlaneRuns(t.Context(), tt.scope)
			if world.looks != tt.wantLooks {
				t.Errorf("looked %d times, want %d", world.looks, tt.wantLooks)
			}
			if world.fluxAsked != tt.wantFluxAsked {
				t.Errorf("Flux was asked %d times, want %d", world.fluxAsked, tt.wantFluxAsked)
			}
			if diff := cmp.Diff(tt.wantDeleted, world.deleted); diff != "" {
				t.Errorf("deleted (-want +got):\n%s", diff)
			}
			if tt.wantFails != nil || tt.wantReason == "" {
				if !errors.Is(err, tt.wantFails) {
					t.Errorf("got %v, want %v", err, tt.wantFails)
				}
				return
			}
			want := step.WaitFor(10*time.Second, tt.wantReason, tt.wantMessage)
			if diff := cmp.Diff(want, err, cmp.AllowUnexported(step.WaitError{})); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
		})
	}
}
