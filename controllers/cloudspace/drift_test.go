// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"errors"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
)

// driftWorld has the release of a control plane and what it made, and counts how often Flux is asked.
type driftWorld struct {
	t       *testing.T
	r       *Reconciler
	release *helmv2.HelmRelease
	events  *events.FakeRecorder
	asked   int
	status  v1alpha1.DriftStatus
}

const (
	deploymentID = "vcluster-alice-default_alice-default_apps_Deployment"
	serviceID    = "vcluster-alice-default_alice-default__Service"
)

func newDriftWorld(t *testing.T, fails error) *driftWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(helmv2.AddToScheme(scheme))
	in := metav1.ObjectMeta{Namespace: "vcluster-alice-default", Name: "alice-default", UID: "uid-2", Generation: 1}
	w := &driftWorld{t: t, events: events.NewFakeRecorder(100), release: &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeopera-system", Name: "alice-default", Generation: 1},
		Status: helmv2.HelmReleaseStatus{
			History: helmv2.Snapshots{{Version: 1, LastDeployed: metav1.NewTime(noon)}},
			Inventory: &helmv2.ResourceInventory{Entries: []helmv2.ResourceRef{
				{ID: deploymentID}, {ID: serviceID}, {ID: "vcluster-alice-default_vc-config-alice-default__Secret"}, {ID: "not an id"},
			}},
		},
	}}
	service := &corev1.Service{ObjectMeta: in}
	service.Generation = 0
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&appsv1.Deployment{ObjectMeta: in}, service, w.release).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if fails != nil {
					return fails
				}
				return c.Get(ctx, key, o, options...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
				if _, ok := o.(*helmv2.HelmRelease); ok {
					w.asked++
				}
				return c.Patch(ctx, o, p, options...)
			},
		}).Build()
	w.r = &Reconciler{Applier: apply.Applier{Client: server, Live: server}, Recorder: w.events}
	return w
}

// pass is one pass at a time, after which status keeps what it is to keep.
func (w *driftWorld) pass(at time.Duration) (*scope, error) {
	w.t.Helper()
	s := grantedScope(testCloudSpace("default"))
	s.object.Status.Drift = w.status
	s.now = noon.Add(at)
	s.token = s.now.Format(time.RFC3339Nano)
	s.observed.controlPlane = w.release
	err := w.r.mendDrift(w.t.Context(), s)
	w.status = nextDrift(w.status, s.observed.parts, true)
	return s, err
}

// handled is Flux having looked.
func (w *driftWorld) handled() {
	w.release.Status.LastHandledReconcileAt = w.release.Annotations["reconcile.fluxcd.io/requestedAt"]
}

func (w *driftWorld) change(object client.Object, change func(client.Object)) {
	w.t.Helper()
	if err := w.r.Client.Get(w.t.Context(), client.ObjectKey{Namespace: "vcluster-alice-default", Name: "alice-default"}, object); err != nil {
		w.t.Fatal(err)
	}
	change(object)
	if err := w.r.Client.Update(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func relabel(o client.Object)    { o.SetLabels(map[string]string{"changed": "yes"}) }
func regenerate(o client.Object) { o.SetGeneration(o.GetGeneration() + 1) }

func TestFluxIsAskedToPutDriftRight(t *testing.T) {
	tests := map[string]struct {
		drift     func(*driftWorld)
		at        time.Duration
		wantAsked int
		// wantBack is when there is another pass because it is too early.
		wantBack time.Duration
	}{
		"all is as it was":   {at: time.Minute},
		"a part was altered": {at: time.Minute, wantAsked: 1, drift: func(w *driftWorld) { w.change(&appsv1.Deployment{}, regenerate) }},
		"only the status of one whose changes are counted": {at: time.Minute, drift: func(w *driftWorld) { w.change(&appsv1.Deployment{}, relabel) }},
		"a part whose changes are not counted":             {at: time.Minute, wantAsked: 1, drift: func(w *driftWorld) { w.change(&corev1.Service{}, relabel) }},
		"a part was removed": {at: time.Minute, wantAsked: 1, drift: func(w *driftWorld) {
			w.change(&corev1.Service{}, func(o client.Object) {
				if err := w.r.Client.Delete(w.t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
					w.t.Fatal(err)
				}
				o.SetResourceVersion("")
				o.SetName("another")
				if err := w.r.Client.Create(w.t.Context(), o); err != nil {
					w.t.Fatal(err)
				}
			})
		}},
		"altered right after the installation": {at: 4 * time.Second, wantBack: 6 * time.Second, drift: func(w *driftWorld) { w.change(&appsv1.Deployment{}, regenerate) }},
		"while Flux has not done what it was asked": {at: time.Minute, drift: func(w *driftWorld) {
			w.change(&appsv1.Deployment{}, regenerate)
			w.release.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": "before"}
		}},
		"Flux has installed it anew": {at: time.Minute, drift: func(w *driftWorld) {
			w.change(&appsv1.Deployment{}, regenerate)
			w.release.Status.History = append(helmv2.Snapshots{{Version: 2}}, w.release.Status.History...)
		}},
		"nothing is recorded yet": {at: time.Minute, drift: func(w *driftWorld) { w.status = v1alpha1.DriftStatus{} }},
		"Flux keeps no inventory": {at: time.Minute, drift: func(w *driftWorld) { w.release.Status.Inventory = nil }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newDriftWorld(t, nil)
			if _, err := w.pass(time.Second); err != nil || w.asked != 0 || w.status.Parts == "" {
				t.Fatalf("the first pass: %v, asked %d times, recorded %+v", err, w.asked, w.status)
			}
			if tt.drift != nil {
				tt.drift(w)
			}
			s, err := w.pass(tt.at)
			if err != nil || w.asked != tt.wantAsked || s.comeBack != tt.wantBack {
				t.Errorf("asked %d times, back in %s, %v; want %d, %s", w.asked, s.comeBack, err, tt.wantAsked, tt.wantBack)
			}
			if told := len(w.events.Events); told != tt.wantAsked {
				t.Errorf("%d events, want %d", told, tt.wantAsked)
			}
		})
	}
}

// Flux puts a part right, which alters it once more; then all is quiet.
func TestDriftThatWasPutRightIsNoDrift(t *testing.T) {
	w := newDriftWorld(t, nil)
	for at, happens := range []func(){
		nil,
		func() { w.change(&appsv1.Deployment{}, regenerate) },
		func() { w.change(&appsv1.Deployment{}, regenerate); w.handled() },
		nil,
		nil,
	} {
		if happens != nil {
			happens()
		}
		if _, err := w.pass(time.Duration(at+1) * time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if w.asked != 1 {
		t.Errorf("asked %d times, want once", w.asked)
	}
}

// Somebody who alters a part again and again does not take Flux's time from others.
func TestEndlessDriftIsAskedAboutEverLessOften(t *testing.T) {
	w := newDriftWorld(t, nil)
	for at := time.Minute; at <= 20*time.Minute; at += 10 * time.Second {
		w.change(&corev1.Service{}, func(o client.Object) { o.SetLabels(map[string]string{"at": at.String()}) })
		if _, err := w.pass(at); err != nil {
			t.Fatal(err)
		}
		w.handled()
	}
	if w.asked < 20 || w.asked > 26 {
		t.Errorf("asked %d times in twenty minutes, want once a minute after the first few", w.asked)
	}
}

func TestPartsThatCannotBeReadFailThePass(t *testing.T) {
	if _, err := newDriftWorld(t, errBoom).pass(time.Minute); !errors.Is(err, errBoom) {
		t.Errorf("got %v", err)
	}
}

// What is recorded is how things stand when all runs, once for each time that Flux looked.
func TestWhatStoodAfterFluxLookedIsRecorded(t *testing.T) {
	before := v1alpha1.DriftStatus{Look: "1", Parts: "a"}
	tests := map[string]struct {
		seen    parts
		running bool
		want    v1alpha1.DriftStatus
	}{
		"Flux looked":                     {parts{look: "2", digest: "b"}, true, v1alpha1.DriftStatus{Look: "2", Parts: "b"}},
		"it did not, and there is drift":  {parts{look: "1", digest: "b"}, true, before},
		"the control plane does not run":  {parts{look: "2", digest: "b"}, false, before},
		"a part is missing":               {parts{look: "2", missing: "x"}, true, before},
		"this pass did not come that far": {parts{}, true, before},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nextDrift(before, tt.seen, tt.running); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
