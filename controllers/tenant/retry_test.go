// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/step"
)

const requestKey = "tenancy.kubeopera.io/retry-requested"

// firstWait is the Tenant's first: the 5 s of the test's backoff, which its UID shortens by 3.02 %.
const firstWait = 4849 * time.Millisecond

func at(after time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(after)} }

// of is the account of a failure of some step, counted a while ago.
func of(proves, reason string, next *metav1.Time) v1alpha1.RetryStatus {
	return v1alpha1.RetryStatus{
		Attempts: 4, NextRetryTime: next, LastHandledRequest: "monday",
		LastError: &v1alpha1.RetryError{Step: proves, Reason: reason, Message: "boom", Class: "Transient", Time: *at(-time.Minute)},
	}
}

// keeping gives a CloudSpace an account.
func keeping(c *v1alpha1.CloudSpace, account v1alpha1.RetryStatus) *v1alpha1.CloudSpace {
	c.Status.Retry = account
	return c
}

func TestTheAccountOfATenantIsThatOfItsCloudSpaceWhileItWaitsForIt(t *testing.T) {
	wait := step.Wait("Installing", "installing the control plane")
	stalled := step.Terminal("InstallFailed", "timed out")
	inside := of("ControlPlaneReady", "InstallFailed", at(time.Minute))
	inside.LastHandledRequest = "the CloudSpace's own"
	followed := of("ControlPlaneReady", "InstallFailed", at(time.Minute))
	// counted is the first failure of a step of the Tenant.
	counted := func(proves, reason, message string, class v1alpha1.ErrorClass) v1alpha1.RetryStatus {
		return v1alpha1.RetryStatus{
			Attempts: 1, NextRetryTime: at(firstWait), LastHandledRequest: "monday",
			LastError: &v1alpha1.RetryError{Step: proves, Reason: reason, Message: message, Class: class, Time: *at(0)},
		}
	}
	handled := v1alpha1.RetryStatus{LastHandledRequest: "monday"}
	tests := map[string]struct {
		previous   v1alpha1.RetryStatus
		asked      string
		cloudSpace *v1alpha1.CloudSpace
		stops      string
		err        error
		want       v1alpha1.RetryStatus
	}{
		"nothing fails": {previous: handled, cloudSpace: following("Active"), want: handled},
		"it waits for a CloudSpace that fails": {
			previous: handled, cloudSpace: keeping(following("Failed"), inside), stops: "CloudSpaceReady", err: stalled, want: followed,
		},
		"it waits for a CloudSpace that is being tried again": {
			previous: handled, cloudSpace: keeping(following("Provisioning"), of("ControlPlaneReady", "InstallFailed", nil)), stops: "CloudSpaceReady", err: wait,
			want: of("ControlPlaneReady", "InstallFailed", nil),
		},
		"it waits for a CloudSpace in which nothing failed": {
			previous: handled, cloudSpace: following("Provisioning"), stops: "CloudSpaceReady", err: wait, want: handled,
		},
		"the CloudSpace is mended": {
			previous: followed, cloudSpace: following("Active"), want: handled,
		},
		"there is no CloudSpace, and it cannot be made": {
			previous: handled, stops: "CloudSpaceReady", err: step.Terminal("InvalidTemplate", "no"),
			want: counted("CloudSpaceReady", "InvalidTemplate", "no", "Terminal"),
		},
		"an earlier step of its own fails": {
			previous: handled, cloudSpace: keeping(following("Failed"), inside), stops: "NamespaceReady", err: errBoom,
			want: counted("NamespaceReady", "ReconcileError", "boom", "Transient"),
		},
		"a later step of its own fails": {
			previous: handled, cloudSpace: keeping(following("Active"), inside), stops: "KubeconfigReady", err: errBoom,
			want: counted("KubeconfigReady", "ReconcileError", "boom", "Transient"),
		},
		"an own failure waits for its time": {
			previous: of("NamespaceReady", "ReconcileError", at(time.Second)), cloudSpace: keeping(following("Failed"), inside), stops: "NamespaceReady", err: errBoom,
			want: of("NamespaceReady", "ReconcileError", at(time.Second)),
		},
		"a call for the CloudSpace fails: that is its own": {
			previous: handled, cloudSpace: keeping(following("Failed"), inside), stops: "CloudSpaceReady", err: errBoom,
			want: counted("CloudSpaceReady", "ReconcileError", "boom", "Transient"),
		},
		"the CloudSpace cannot be altered like its template: that is its own": {
			previous: handled, cloudSpace: keeping(following("Active"), inside), stops: "CloudSpaceReady", err: step.Terminal("InvalidTemplate", "no"),
			want: counted("CloudSpaceReady", "InvalidTemplate", "no", "Terminal"),
		},
		"a request is the Tenant's, whatever the CloudSpace handled": {
			previous: handled, asked: "tuesday", cloudSpace: keeping(following("Failed"), inside), stops: "CloudSpaceReady", err: stalled,
			want: func() v1alpha1.RetryStatus {
				a := of("ControlPlaneReady", "InstallFailed", at(time.Minute))
				a.LastHandledRequest = "tuesday"
				return a
			}(),
		},
		"a request where nothing fails": {
			previous: handled, asked: "tuesday", cloudSpace: following("Active"), want: v1alpha1.RetryStatus{LastHandledRequest: "tuesday"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := testScope(testTenant(func(o *v1alpha1.Tenant) { o.Status.Retry = tt.previous }))
			if tt.asked != "" {
				s.object.Annotations = map[string]string{requestKey: tt.asked}
			}
			s.observed.cloudSpace = tt.cloudSpace
			got := newStatus(s, outcomes(t, tt.stops, tt.err), noon).Retry
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("account (-want +got):\n%s", diff)
			}
			if tt.cloudSpace != nil && got.LastError != nil && got.LastError == tt.cloudSpace.Status.Retry.LastError {
				t.Error("it shares memory with the CloudSpace")
			}
		})
	}
}

// world is an API server that counts what is written to it.
type world struct {
	client.Client
	writes []string
	// refuses is the error of every write to a CloudSpace.
	refuses error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	w := &world{}
	note := func(verb string, object client.Object) error {
		w.writes = append(w.writes, verb+" "+object.GetNamespace()+"/"+object.GetName())
		if _, ok := object.(*v1alpha1.CloudSpace); ok {
			return w.refuses
		}
		return nil
	}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Tenant{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				if err := note("create", o); err != nil {
					return err
				}
				return c.Create(ctx, o, options...)
			},
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
				if err := note("update", o); err != nil {
					return err
				}
				return c.Update(ctx, o, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
				if err := note("patch", o); err != nil {
					return err
				}
				return c.Patch(ctx, o, p, options...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if err := note("delete", o); err != nil {
					return err
				}
				return c.Delete(ctx, o, options...)
			},
		}).Build()
	return w
}

func (w *world) reconciler() *Reconciler {
	return &Reconciler{
		Applier: apply.Applier{Client: w.Client, Live: w.Client}, Recorder: events.NewFakeRecorder(16), Clock: clocktesting.NewFakePassiveClock(noon),
	}
}

func TestARequestIsPassedOnToTheDefaultCloudSpaceOnce(t *testing.T) {
	tests := map[string]struct {
		asked, handled, stands string
		refuses                error
		want                   string
		wantWrites             []string
	}{
		"nobody asks":                                   {},
		"nobody asks any more":                          {handled: "monday", stands: "monday", want: "monday"},
		"the first request":                             {asked: "monday", want: "monday", wantWrites: []string{"patch tenant-alice-default/default"}},
		"another request":                               {asked: "tuesday", handled: "monday", stands: "monday", want: "tuesday", wantWrites: []string{"patch tenant-alice-default/default"}},
		"the request was handled":                       {asked: "monday", handled: "monday"},
		"it was passed on already":                      {asked: "monday", stands: "monday", want: "monday"},
		"the CloudSpace was asked something else since": {asked: "monday", handled: "monday", stands: "its own", want: "its own"},
		"it cannot be passed on": {
			asked: "monday", refuses: errBoom, wantWrites: []string{"patch tenant-alice-default/default"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stands := following("Failed")
			stands.Annotations = map[string]string{"example.com/theirs": "kept"}
			if tt.stands != "" {
				stands.Annotations[requestKey] = tt.stands
			}
			w := newWorld(t, stands)
			s := testScope(testTenant(func(o *v1alpha1.Tenant) { o.Status.Retry.LastHandledRequest = tt.handled }))
			if tt.asked != "" {
				s.object.Annotations = map[string]string{requestKey: tt.asked}
			}
			key := client.ObjectKeyFromObject(stands)
			s.observed.cloudSpace = &v1alpha1.CloudSpace{}
			if err := w.Get(t.Context(), key, s.observed.cloudSpace); err != nil {
				t.Fatal(err)
			}
			w.refuses = tt.refuses
			if err := w.reconciler().passOnRequest(t.Context(), s); !errors.Is(err, tt.refuses) {
				t.Errorf("got %v, want %v", err, tt.refuses)
			}
			if diff := cmp.Diff(tt.wantWrites, w.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			after := &v1alpha1.CloudSpace{}
			if err := w.Get(t.Context(), key, after); err != nil {
				t.Fatal(err)
			}
			if after.Annotations[requestKey] != tt.want || after.Annotations["example.com/theirs"] != "kept" {
				t.Errorf("annotations are %v, want the request %q and those of others", after.Annotations, tt.want)
			}
		})
	}
}

// When the next pass comes by itself: after an own failure at its time, and never for the CloudSpace's, whose changes wake it.
func TestWhenATenantIsLookedAtAgain(t *testing.T) {
	refused := apierrors.NewInternalError(errBoom)
	tests := map[string]struct {
		cloudSpace *v1alpha1.CloudSpace
		refuses    error
		want       time.Duration
	}{
		"the CloudSpace cannot be made now":       {refuses: refused, want: firstWait},
		"the CloudSpace cannot be altered now":    {cloudSpace: owned(following("Failed")), refuses: refused, want: firstWait},
		"a CloudSpace that tries again by itself": {cloudSpace: keeping(foreign(following("Failed", says("Ready", "False", "x", "x"))), of("FluxReady", "InstallFailed", at(time.Minute)))},
		"a CloudSpace that should have by now":    {cloudSpace: keeping(foreign(following("Failed", says("Ready", "False", "x", "x"))), of("FluxReady", "InstallFailed", at(-time.Minute)))},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := testTenant()
			objects := []client.Object{object}
			if tt.cloudSpace != nil {
				objects = append(objects, tt.cloudSpace)
			}
			w := newWorld(t, objects...)
			r, s := w.reconciler(), testScope(object)
			s.observed.cloudSpace, s.observed.objectQuota = tt.cloudSpace, countedQuota(s)
			w.refuses = tt.refuses
			made := step.Run(t.Context(), s, []step.Step[*scope]{{Proves: "CloudSpaceReady", Do: r.ensureCloudSpace}})
			got, err := r.finish(t.Context(), s, made)
			if err != nil {
				t.Fatal(err)
			}
			if got.RequeueAfter != tt.want {
				t.Errorf("looked at again after %v, want %v; the pass ended with %v", got.RequeueAfter, tt.want, step.FirstError(made))
			}
		})
	}
}

// What fails on the way down is tried again with the queue's own backoff, whatever failed on the way up.
func TestATenantThatCannotBeTakenDownNowIsTriedAgain(t *testing.T) {
	tests := map[string]v1alpha1.RetryStatus{
		"nothing had failed": {},
		"something had":      of("NamespaceReady", "ReconcileError", at(-time.Hour)),
	}
	for name, account := range tests {
		t.Run(name, func(t *testing.T) {
			object := testTenant(func(o *v1alpha1.Tenant) {
				o.Status.Retry, o.Finalizers = account, []string{v1alpha1.FinalizerTenant}
				o.DeletionTimestamp = &metav1.Time{Time: noon}
			})
			w := newWorld(t, object, owned(following("Active")))
			w.refuses = errBoom
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			got, err := w.reconciler().takeDown(t.Context(), testScope(object))
			if !errors.Is(err, errBoom) || got.RequeueAfter != 0 {
				t.Errorf("got %+v, %v, want the error itself", got, err)
			}
			if object.Status.Phase != "Deleting" {
				t.Errorf("phase %s, want Deleting", object.Status.Phase)
			}
		})
	}
}

// owned is a CloudSpace that was made for the Tenant, from an earlier template.
func owned(c *v1alpha1.CloudSpace) *v1alpha1.CloudSpace {
	c.Labels = map[string]string{"tenancy.kubeopera.io/owner-uid": "uid-alice"}
	return c
}

// foreign is one that somebody made.
func foreign(c *v1alpha1.CloudSpace) *v1alpha1.CloudSpace {
	c.Labels = map[string]string{"tenancy.kubeopera.io/owner-uid": "uid-bob"}
	return c
}
