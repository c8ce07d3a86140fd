// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
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
	// fails makes the look or the deletion fail.
	failsLook, failsDelete error
}

func (w *podWorld) reconciler(pods ...corev1.Pod) *Reconciler {
	builder := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme)
	for i := range pods {
		builder = builder.WithObjects(&pods[i])
	}
	server := builder.WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			w.looks++
			if w.failsLook != nil {
				return w.failsLook
			}
			return c.List(ctx, list, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if w.failsDelete != nil {
				return w.failsDelete
			}
			w.deleted = append(w.deleted, o.GetNamespace()+"/"+o.GetName())
			return c.Delete(ctx, o, options...)
		},
	}).Build()
	return &Reconciler{Applier: apply.Applier{Client: server, Live: server, Memory: apply.NewMemory()}, Clock: clocktesting.NewFakePassiveClock(noon)}
}

// starting is a pass over a CloudSpace whose control plane has been starting for a while, and whose API server does not run.
func starting(since time.Duration) *scope {
	object := testCloudSpace("default")
	object.Status.Conditions = []metav1.Condition{
		{Type: "ControlPlaneReady", Status: metav1.ConditionFalse, Reason: "Starting", LastTransitionTime: metav1.NewTime(noon.Add(-since))},
	}
	s := newScope(object)
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
