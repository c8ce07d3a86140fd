// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tantilium/cloud-runner/internal/step"
)

var alice = Owner{Tenant: "alice", CloudSpace: "default", UID: "uid-alice"}

// world is an API server that remembers what was written to it.
type world struct {
	client.Client
	writes []string
}

func newWorld(objects ...client.Object) *world {
	w := &world{}
	note := func(verb string, object client.Object) {
		w.writes = append(w.writes, verb+" "+object.GetName())
	}
	w.Client = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			note("create", o)
			return c.Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			note("update", o)
			return c.Update(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			note("patch", o)
			return c.Patch(ctx, o, p, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			note("delete", o)
			return c.Delete(ctx, o, options...)
		},
	}).Build()
	return w
}

func (w *world) applier() Applier { return Applier{Client: w.Client, Live: w.Client} }

func (w *world) get(t *testing.T) *corev1.ResourceQuota {
	t.Helper()
	var found *corev1.ResourceQuota
	if err := Read(t.Context(), w.Client, &found, "space", "quota"); err != nil {
		t.Fatal(err)
	}
	return found
}

// quota is the object of these tests: made for alice, as it should be.
func quota(alter ...func(*corev1.ResourceQuota)) *corev1.ResourceQuota {
	object := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: "space", UID: "uid-quota", Labels: alice.Labels()},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("5")}},
	}
	for _, a := range alter {
		a(object)
	}
	return object
}

// wanted is what a caller asks for: no labels of the owner, no identity.
func wanted() *corev1.ResourceQuota {
	return quota(func(q *corev1.ResourceQuota) { q.Labels, q.UID = nil, "" })
}

func foreign(q *corev1.ResourceQuota) {
	q.Labels = map[string]string{"tenancy.kubeopera.io/owner-uid": "uid-bob"}
}
func unmarked(q *corev1.ResourceQuota) { q.Labels = nil }
func altered(q *corev1.ResourceQuota)  { q.Spec.Hard["pods"] = resource.MustParse("99") }
func deleting(q *corev1.ResourceQuota) {
	q.DeletionTimestamp, q.Finalizers = &metav1.Time{Time: metav1.Now().Rfc3339Copy().Time}, []string{"example.com/hold"}
}

func TestEnsure(t *testing.T) {
	tests := map[string]struct {
		reason string
		// stands is on the API server; cached is what the cache has of it.
		stands, cached *corev1.ResourceQuota
		wantWrites     []string
		wantClass      string
		wantReason     string
		wantMessage    string
		// untouched says that what stands must be the same afterwards.
		untouched bool
	}{
		"nothing there: it is made": {
			wantWrites: []string{"create quota"},
		},
		"it is right: nothing is written": {
			stands: quota(), cached: quota(),
			untouched: true,
		},
		"the same quantity in other words is right": {
			reason: "5 and 5000m are the same",
			stands: quota(), cached: quota(func(q *corev1.ResourceQuota) { q.Spec.Hard["pods"] = resource.MustParse("5000m") }),
			untouched: true,
		},
		"status is not compared": {
			stands:    quota(func(q *corev1.ResourceQuota) { q.Status.Hard = q.Spec.Hard }),
			cached:    quota(func(q *corev1.ResourceQuota) { q.Status.Hard = q.Spec.Hard }),
			untouched: true,
		},
		"a field altered by hand is put right": {
			stands: quota(altered), cached: quota(altered),
			wantWrites: []string{"update quota"},
		},
		"a field added by hand is taken away": {
			stands:     quota(func(q *corev1.ResourceQuota) { q.Spec.Scopes = []corev1.ResourceQuotaScope{"BestEffort"} }),
			cached:     quota(func(q *corev1.ResourceQuota) { q.Spec.Scopes = []corev1.ResourceQuotaScope{"BestEffort"} }),
			wantWrites: []string{"update quota"},
		},
		"a label of ours altered by hand is put right": {
			stands:     quota(func(q *corev1.ResourceQuota) { q.Labels["tenancy.kubeopera.io/tenant"] = "bob" }),
			cached:     quota(func(q *corev1.ResourceQuota) { q.Labels["tenancy.kubeopera.io/tenant"] = "bob" }),
			wantWrites: []string{"update quota"},
		},
		"somebody else's object is refused and left alone": {
			stands: quota(foreign), cached: quota(foreign),
			wantClass: "Terminal", wantReason: "NotOurs",
			wantMessage: "ResourceQuota quota exists and was not made for this object; it is left alone", untouched: true,
		},
		"an object that nobody marked is somebody else's": {
			reason: "it is never adopted, even if it is just what is wanted",
			stands: quota(unmarked), cached: quota(unmarked),
			wantClass: "Terminal", wantReason: "NotOurs",
			wantMessage: "ResourceQuota quota exists and was not made for this object; it is left alone", untouched: true,
		},
		"somebody else's object that the cache cannot see is found by creating": {
			stands: quota(foreign), wantWrites: []string{"create quota"},
			wantClass: "Terminal", wantReason: "NotOurs",
			wantMessage: "ResourceQuota quota exists and was not made for this object; it is left alone", untouched: true,
		},
		"our own object that the cache has not seen yet is no conflict with anybody": {
			stands: quota(), wantWrites: []string{"create quota"},
			wantClass: "Stale", untouched: true,
		},
		"our own object that the cache cannot see for want of a label gets it back": {
			reason:     "the cache selects by it; the next pass sees to the rest",
			stands:     quota(func(q *corev1.ResourceQuota) { delete(q.Labels, "tenancy.kubeopera.io/tenant") }),
			wantWrites: []string{"create quota", "update quota"},
			wantClass:  "Stale",
		},
		"an old object of ours that is going is waited for": {
			stands: quota(deleting), cached: quota(deleting),
			wantClass: "Wait", wantReason: "Terminating",
			wantMessage: "an earlier ResourceQuota quota is still being deleted: held by finalizer example.com/hold", untouched: true,
		},
		"somebody else's object that is going is waited for": {
			stands: quota(foreign, deleting), wantWrites: []string{"create quota"},
			wantClass: "Wait", wantReason: "Terminating",
			wantMessage: "an earlier ResourceQuota quota is still being deleted: held by finalizer example.com/hold", untouched: true,
		},
		"a write against an old view is refused": {
			reason:     "what was compared must be what is replaced",
			stands:     quota(altered, func(q *corev1.ResourceQuota) { q.ResourceVersion = "8" }),
			cached:     quota(altered, func(q *corev1.ResourceQuota) { q.ResourceVersion = "7" }),
			wantWrites: []string{"update quota"}, wantClass: "Stale", untouched: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(present(tt.stands)...)
			before := w.get(t)
			if tt.cached != nil && tt.cached.ResourceVersion == "" {
				tt.cached.ResourceVersion = before.ResourceVersion
			}
			got, err := Ensure(t.Context(), w.applier(), alice, tt.cached, wanted())
			if diff := cmp.Diff(tt.wantWrites, w.writes); diff != "" {
				t.Errorf("%s: writes (-want +got):\n%s", tt.reason, diff)
			}
			if class := step.Class(err); class != tt.wantClass {
				t.Fatalf("%s: error %v of class %q, want %q", tt.reason, err, class, tt.wantClass)
			}
			if tt.wantReason != "" {
				if reason, message := step.Explain(err, ""); reason != tt.wantReason || message != tt.wantMessage {
					t.Errorf("says %q: %q, want %q: %q", reason, message, tt.wantReason, tt.wantMessage)
				}
			}
			after := w.get(t)
			if tt.untouched {
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("%s: what stands was touched:\n%s", tt.reason, diff)
				}
				return
			}
			if diff := cmp.Diff(wanted().Spec, after.Spec); diff != "" {
				t.Errorf("%s: what stands now (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(map[string]string{
				"tenancy.kubeopera.io/tenant": "alice", "tenancy.kubeopera.io/cloudspace": "default", "tenancy.kubeopera.io/owner-uid": "uid-alice",
			}, after.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if err == nil && got.ResourceVersion != after.ResourceVersion {
				t.Errorf("got the object at version %s, it stands at %s", got.ResourceVersion, after.ResourceVersion)
			}
		})
	}
}

func present(object *corev1.ResourceQuota) []client.Object {
	if object == nil {
		return nil
	}
	return []client.Object{object.DeepCopy()}
}

func TestWhatOthersPutOnAnObjectStays(t *testing.T) {
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "uid-a"}
	stands := quota(altered, func(q *corev1.ResourceQuota) {
		q.Labels["example.com/team"] = "blue"
		q.Annotations = map[string]string{"example.com/note": "kept"}
		q.Finalizers = []string{"example.com/hold"}
		q.OwnerReferences = []metav1.OwnerReference{reference}
	})
	w := newWorld(stands)
	desired := wanted()
	desired.Annotations = map[string]string{"tenancy.kubeopera.io/ours": "new"}
	if _, err := Ensure(t.Context(), w.applier(), alice, w.get(t), desired); err != nil {
		t.Fatal(err)
	}
	got := w.get(t)
	if got.Labels["example.com/team"] != "blue" {
		t.Errorf("labels are %v, want those of others kept", got.Labels)
	}
	if diff := cmp.Diff(map[string]string{"example.com/note": "kept", "tenancy.kubeopera.io/ours": "new"}, got.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if !slices.Contains(got.Finalizers, "example.com/hold") || len(got.OwnerReferences) != 1 {
		t.Errorf("finalizers %v and owners %v, want those of others kept", got.Finalizers, got.OwnerReferences)
	}
	if pods := got.Spec.Hard["pods"]; pods.Value() != 5 {
		t.Errorf("pods is %v, want it put right all the same", pods)
	}
	w.writes = nil
	if _, err := Ensure(t.Context(), w.applier(), alice, got, desired); err != nil || len(w.writes) > 0 {
		t.Errorf("a second pass wrote %v, %v: what others put on must not count as a difference", w.writes, err)
	}
}

func TestAnObjectThatGoesWhileItIsMadeIsAStaleView(t *testing.T) {
	w := newWorld()
	taken := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			return apierrors.NewAlreadyExists(corev1.Resource("resourcequotas"), "quota")
		},
	})
	if _, err := Ensure(t.Context(), Applier{Client: taken, Live: w.Client}, alice, nil, wanted()); !errors.Is(err, step.ErrStale) {
		t.Errorf("got %v, want a stale view", err)
	}
}

func TestErrorsOfTheAPIServerComeThrough(t *testing.T) {
	boom := errors.New("boom")
	fails := interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return boom },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return boom },
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return boom
		},
	}
	broken := interceptor.NewClient(newWorld().Client.(client.WithWatch), fails)
	applier := Applier{Client: broken, Live: broken}
	calls := map[string]func() error{
		"create": func() error { _, err := Ensure(t.Context(), applier, alice, nil, wanted()); return err },
		"update": func() error { _, err := Ensure(t.Context(), applier, alice, quota(altered), wanted()); return err },
		"delete": func() error { _, err := applier.Delete(t.Context(), alice, wanted()); return err },
		"read":   func() error { into := quota(); return Read(t.Context(), broken, &into, "space", "quota") },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			if err := call(); !errors.Is(err, boom) || step.Class(err) != "Transient" {
				t.Errorf("got %v of class %s, want boom as a transient error", err, step.Class(err))
			}
		})
	}
}

func TestDelete(t *testing.T) {
	tests := map[string]struct {
		stands     *corev1.ResourceQuota
		wantGone   bool
		wantWrites []string
		wantLeft   bool
	}{
		"an object that is not there is gone":                         {wantGone: true},
		"ours is deleted, and seen to be gone in the next pass":       {stands: quota(), wantWrites: []string{"delete quota"}},
		"ours that is going already is waited for, not deleted again": {stands: quota(deleting), wantLeft: true},
		"somebody else's counts as gone and is left alone":            {stands: quota(foreign), wantGone: true, wantLeft: true},
		"an object nobody marked is somebody else's":                  {stands: quota(unmarked), wantGone: true, wantLeft: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(present(tt.stands)...)
			gone, err := w.applier().Delete(t.Context(), alice, wanted())
			if err != nil || gone != tt.wantGone {
				t.Errorf("gone is %v, %v, want %v", gone, err, tt.wantGone)
			}
			if diff := cmp.Diff(tt.wantWrites, w.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if left := w.get(t) != nil; left != tt.wantLeft {
				t.Errorf("it is left: %v, want %v", left, tt.wantLeft)
			}
		})
	}
}

// Between the look and the delete another object may take the name: only the one that was looked at may be deleted.
func TestDeleteNamesTheObjectItMeans(t *testing.T) {
	w := newWorld(quota())
	var got client.DeleteOptions
	watching := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			got.ApplyOptions(options)
			return nil
		},
	})
	if _, err := (Applier{Client: watching, Live: w.Client}).Delete(t.Context(), alice, wanted()); err != nil {
		t.Fatal(err)
	}
	if got.Preconditions == nil || got.Preconditions.UID == nil || *got.Preconditions.UID != types.UID("uid-quota") {
		t.Errorf("preconditions are %v, want the UID that was looked at", got.Preconditions)
	}
}

func TestOwnership(t *testing.T) {
	tests := map[string]struct {
		owner  Owner
		object client.Object
		want   bool
	}{
		"its UID is on the object":                     {owner: alice, object: quota(), want: true},
		"another UID, although the names are the same": {owner: Owner{Tenant: "alice", CloudSpace: "default", UID: "uid-of-an-earlier-one"}, object: quota()},
		"no label":                                            {owner: alice, object: quota(unmarked)},
		"an owner without a UID owns nothing":                 {owner: Owner{}, object: quota(func(q *corev1.ResourceQuota) { q.Labels["tenancy.kubeopera.io/owner-uid"] = "" })},
		"the platform owns what it made":                      {owner: Platform, object: quota(func(q *corev1.ResourceQuota) { q.Labels = Platform.Labels() }), want: true},
		"the platform does not own what it made for a tenant": {owner: Platform, object: quota()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.owner.Owns(tt.object); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if diff := cmp.Diff(map[string]string{"tenancy.kubeopera.io/owner-uid": "platform"}, Platform.Labels()); diff != "" {
		t.Errorf("labels of the platform (-want +got):\n%s", diff)
	}
}

func TestFinalizers(t *testing.T) {
	const ours, theirs = "tenancy.kubeopera.io/cloudspace", "example.com/hold"
	w := newWorld(quota(func(q *corev1.ResourceQuota) { q.Finalizers = []string{theirs} }))
	steps := []struct {
		name       string
		do         func(*corev1.ResourceQuota) error
		want       []string
		wantWrites int
	}{
		{"added beside that of others", func(q *corev1.ResourceQuota) error {
			_, err := w.applier().AddFinalizer(t.Context(), q, ours)
			return err
		}, []string{theirs, ours}, 1},
		{"not added twice", func(q *corev1.ResourceQuota) error {
			_, err := w.applier().AddFinalizer(t.Context(), q, ours)
			return err
		}, []string{theirs, ours}, 0},
		{"removed, that of others stays", func(q *corev1.ResourceQuota) error { return w.applier().RemoveFinalizer(t.Context(), q, ours) }, []string{theirs}, 1},
		{"not removed twice", func(q *corev1.ResourceQuota) error { return w.applier().RemoveFinalizer(t.Context(), q, ours) }, []string{theirs}, 0},
	}
	for _, tt := range steps {
		w.writes = nil
		if err := tt.do(w.get(t)); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got := w.get(t).Finalizers; !slices.Equal(got, tt.want) || len(w.writes) != tt.wantWrites {
			t.Errorf("%s: finalizers %v after %d writes, want %v after %d", tt.name, got, len(w.writes), tt.want, tt.wantWrites)
		}
	}
	old := w.get(t)
	old.ResourceVersion = "1"
	if _, err := w.applier().AddFinalizer(t.Context(), old, ours); !apierrors.IsConflict(err) {
		t.Errorf("against an old view: %v, want a conflict: finalizers are written as a whole list", err)
	}
	gone := func(finalizers ...string) *corev1.ResourceQuota {
		return quota(func(q *corev1.ResourceQuota) { q.Finalizers, q.ResourceVersion = finalizers, "1" })
	}
	if missing, err := newWorld().applier().AddFinalizer(t.Context(), gone(), ours); !missing || err != nil {
		t.Errorf("on an object that is gone: missing %v, %v; want the pass to end without an error: nothing may be made for it", missing, err)
	}
	if err := newWorld().applier().RemoveFinalizer(t.Context(), gone(ours), ours); err != nil {
		t.Errorf("on an object that is gone: %v, want none", err)
	}
}

func TestALostFinalizerIsNews(t *testing.T) {
	const ours = "tenancy.kubeopera.io/cloudspace"
	has := quota(func(q *corev1.ResourceQuota) { q.Finalizers = []string{"example.com/hold", ours} })
	lacks := quota(func(q *corev1.ResourceQuota) { q.Finalizers = []string{"example.com/hold"} })
	tests := map[string]struct {
		before, after *corev1.ResourceQuota
		want          bool
	}{
		"it is taken off":                    {before: has, after: lacks, want: true},
		"we put it on":                       {before: lacks, after: has},
		"it stays":                           {before: has, after: has},
		"it is let go when it is taken down": {before: has, after: quota(deleting)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := FinalizerLost(ours).Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestPatchStatusIsRefusedAgainstAnOldView(t *testing.T) {
	w := newWorld(quota())
	status := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(quota()).WithStatusSubresource(&corev1.ResourceQuota{}).Build()
	w.Client = status
	before := w.get(t)
	after := before.DeepCopy()
	after.Status.Hard = after.Spec.Hard
	after.Spec.Hard = corev1.ResourceList{"pods": resource.MustParse("99")}
	if err := w.applier().PatchStatus(t.Context(), before, after); err != nil {
		t.Fatal(err)
	}
	got := w.get(t)
	if hard := got.Status.Hard["pods"]; hard.Value() != 5 {
		t.Errorf("status says %v, want what was written", got.Status.Hard)
	}
	if pods := got.Spec.Hard["pods"]; pods.Value() != 5 {
		t.Errorf("spec says %v, want it as it was: only status is written", pods)
	}
	again := before.DeepCopy()
	again.Status.Hard = corev1.ResourceList{"pods": resource.MustParse("1")}
	if err := w.applier().PatchStatus(t.Context(), before, again); !apierrors.IsConflict(err) {
		t.Errorf("got %v, want a conflict", err)
	}
}

func TestReadPutsNilWhenThereIsNone(t *testing.T) {
	into := quota()
	if err := Read(t.Context(), newWorld().Client, &into, "space", "quota"); err != nil || into != nil {
		t.Errorf("got %v, %v, want nil", into, err)
	}
	if err := Read(t.Context(), newWorld(quota()).Client, &into, "space", "quota"); err != nil || into == nil || !strings.HasPrefix(into.Name, "quota") {
		t.Errorf("got %v, %v, want the object", into, err)
	}
}
