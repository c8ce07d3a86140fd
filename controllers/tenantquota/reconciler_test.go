// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenantquota

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/quota"
	"github.com/tantilium/cloud-runner/internal/step"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// world is an API server and what the caches show of it, which may be the past. It stands in for both.
type world struct {
	client.Client
	server client.WithWatch
	calls  []string
	// meanwhile happens once, after the ledger was read from the API server.
	meanwhile func()
	// beforeList happens before CloudSpaces are listed.
	beforeList func()
	// cannotList is a kind that cannot be listed.
	cannotList client.ObjectList
}

func newWorld(t *testing.T, server, shown []client.Object) (*world, *Reconciler) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{}
	build := func(objects []client.Object, funcs interceptor.Funcs) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.TenantQuota{}).
			WithIndex(&corev1.Namespace{}, hostNamespaces, tenantOf).WithInterceptorFuncs(funcs).Build()
	}
	w.server = build(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			w.calls = append(w.calls, fmt.Sprintf("get %T %s", o, key.Name))
			err := c.Get(ctx, key, o, options...)
			if act := w.meanwhile; act != nil {
				w.meanwhile = nil
				act()
			}
			return err
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			w.calls = append(w.calls, fmt.Sprintf("patch %T %s", o, o.GetName()))
			return c.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
	w.Client = build(shown, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if w.beforeList != nil {
				w.beforeList()
			}
			if w.cannotList != nil && reflect.TypeOf(list) == reflect.TypeOf(w.cannotList) {
				return errBoom
			}
			return c.List(ctx, list, options...)
		},
		SubResourcePatch: func(ctx context.Context, _ client.Client, sub string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			return w.server.SubResource(sub).Patch(ctx, o, p, options...)
		},
	})
	return w, &Reconciler{Applier: apply.Applier{Client: w.Client, Live: w.server, Memory: apply.NewMemory()}, Clock: clocktesting.NewFakePassiveClock(noon)}
}

func tenantQuota(cpu string, reservations ...v1alpha1.QuotaReservation) *v1alpha1.TenantQuota {
	return &v1alpha1.TenantQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "alice", Generation: 1},
		Spec:       v1alpha1.TenantQuotaSpec{Hard: v1alpha1.QuotaAmounts{v1alpha1.QuotaCPU: resource.MustParse(cpu)}},
		Status:     v1alpha1.TenantQuotaStatus{Reservations: reservations},
	}
}

func asked(cpu string) v1alpha1.CloudSpaceResources {
	return v1alpha1.CloudSpaceResources{CPU: resource.MustParse(cpu), Memory: resource.MustParse("1Gi"), Storage: resource.MustParse("1Gi"), Pods: 10}
}

func reservation(cpu string) v1alpha1.QuotaReservation {
	return v1alpha1.QuotaReservation{CloudSpace: "dev", UID: "uid-dev", Since: metav1.NewTime(noon.Add(-time.Hour)), Amounts: quota.Of(asked(cpu))}
}

func cloudSpace(cpu string, generation int64) *v1alpha1.CloudSpace {
	return &v1alpha1.CloudSpace{
		ObjectMeta: metav1.ObjectMeta{Name: "dev", Namespace: "tenant-alice", UID: "uid-dev", Generation: generation, CreationTimestamp: metav1.NewTime(noon.Add(-2 * time.Hour))},
		Spec:       v1alpha1.CloudSpaceSpec{Resources: asked(cpu)},
	}
}

// host is the host namespace of a CloudSpace with its quota, which follows a generation of its spec.
func host(owner, cpu, generation string) []client.Object {
	labels := map[string]string{v1alpha1.LabelTenant: "alice", v1alpha1.LabelCloudSpace: "dev"}
	if owner != "" {
		labels[v1alpha1.LabelOwnerUID] = owner
	}
	hard := corev1.ResourceList{
		corev1.ResourceRequestsCPU: resource.MustParse(cpu), corev1.ResourceRequestsMemory: resource.MustParse("1Gi"),
		corev1.ResourceRequestsStorage: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("10"),
	}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "vcluster-alice--dev", Labels: labels, CreationTimestamp: metav1.NewTime(noon)}},
		&corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{
				Name: "cloudspace", Namespace: "vcluster-alice--dev", Labels: labels, Annotations: map[string]string{v1alpha1.AnnotationGeneration: generation},
			},
			Spec: corev1.ResourceQuotaSpec{Hard: hard}, Status: corev1.ResourceQuotaStatus{Hard: hard},
		},
	}
}

// other is another CloudSpace of the tenant.
func other() *v1alpha1.CloudSpace {
	made := cloudSpace("2", 1)
	made.Name, made.UID = "other", "uid-other"
	return made
}

// renamed gives a host namespace another name.
func renamed(objects []client.Object) []client.Object {
	objects[0].SetName("vcluster-alice--other")
	return objects
}

// before makes objects as old as can be.
func before(objects []client.Object) []client.Object {
	for _, o := range objects {
		o.SetCreationTimestamp(metav1.NewTime(noon.AddDate(-1, 0, 0)))
	}
	return objects
}

func all(lists ...[]client.Object) (objects []client.Object) {
	for _, list := range lists {
		for _, o := range list {
			duplicate, _ := o.DeepCopyObject().(client.Object)
			objects = append(objects, duplicate)
		}
	}
	return objects
}

func one(o client.Object) []client.Object { return []client.Object{o} }

// What is given back is confirmed by the API server: caches may show the past.
func TestReservations(t *testing.T) {
	tests := map[string]struct {
		ledger []v1alpha1.QuotaReservation
		// server is what there is; shown what the caches show of it, if that is something else.
		server, shown []client.Object
		want          map[string]string
		wantAgain     time.Duration
	}{
		"what is asked for is reserved": {server: one(cloudSpace("2", 1)), want: map[string]string{"dev": "2"}},
		"it ends when nothing is left":  {ledger: []v1alpha1.QuotaReservation{reservation("2")}, want: map[string]string{}},
		"it does not end while the host namespace is there": {
			ledger: []v1alpha1.QuotaReservation{reservation("2")}, server: host("uid-dev", "2", "1"), want: map[string]string{"dev": "2"},
		},
		"nor while one is there that says of nobody whose it is": {
			ledger: []v1alpha1.QuotaReservation{reservation("2")}, server: host("", "2", "1"), want: map[string]string{"dev": "2"},
		},
		"it does not stay for one of nobody's that was there before": {
			ledger: []v1alpha1.QuotaReservation{reservation("2")}, server: before(host("", "2", "1")), want: map[string]string{},
		},
		"it ends when the host namespace is another one's": {
			ledger: []v1alpha1.QuotaReservation{reservation("2")}, server: host("uid-other", "3", "1"), want: map[string]string{},
		},
		"the caches have not seen the CloudSpace yet": {
			ledger: []v1alpha1.QuotaReservation{reservation("2")}, server: one(cloudSpace("2", 1)), shown: []client.Object{},
			want: map[string]string{"dev": "2"}, wantAgain: lookAgain,
		},
		"the caches do not show the host namespace any more": {
			ledger: []v1alpha1.QuotaReservation{reservation("2")}, server: host("uid-dev", "2", "1"), shown: []client.Object{},
			want: map[string]string{"dev": "2"}, wantAgain: lookAgain,
		},
		"it is lowered when the host cluster follows": {
			ledger: []v1alpha1.QuotaReservation{reservation("4")}, server: all(one(cloudSpace("1", 2)), host("uid-dev", "1", "2")), want: map[string]string{"dev": "1"},
		},
		"it is not lowered before": {
			ledger: []v1alpha1.QuotaReservation{reservation("4")}, server: all(one(cloudSpace("1", 2)), host("uid-dev", "1", "1")), want: map[string]string{"dev": "4"},
		},
		"the caches show it lower than it is": {
			ledger: []v1alpha1.QuotaReservation{reservation("4")},
			server: all(one(cloudSpace("1", 4)), host("uid-dev", "4", "3")), shown: all(one(cloudSpace("1", 2)), host("uid-dev", "1", "2")),
			want: map[string]string{"dev": "4"}, wantAgain: lookAgain,
		},
		"a namespace under its name that says of nobody whose it is gives a new one nothing": {
			server: all(one(cloudSpace("9", 1)), host("", "3", "1")), want: map[string]string{},
		},
		"a lost ledger is made anew from what is there": {
			server: all(one(cloudSpace("9", 2)), host("uid-dev", "3", "1")), want: map[string]string{"dev": "3"},
		},
		"and what is left of a CloudSpace that is gone is granted to nobody": {
			server: all(host("uid-earlier", "7", "1"), one(other())), want: map[string]string{},
		},
		"one that has its name has a reservation, and is refused the namespace": {
			server: all(one(cloudSpace("2", 1)), host("uid-earlier", "3", "1")), want: map[string]string{"dev": "2"},
		},
		"what only the caches still show is": {
			server: one(other()), shown: all(host("uid-earlier", "7", "1"), one(other())), want: map[string]string{"other": "2"},
		},
		"and what has another name than its labels say": {
			server: all(renamed(host("uid-earlier", "7", "1")), one(other())), want: map[string]string{"other": "2"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.shown == nil {
				tt.shown = tt.server
			}
			object := tenantQuota("8", tt.ledger...)
			w, r := newWorld(t, all(one(object), tt.server), all(one(object), tt.shown))
			got := reconcileOnce(t, w, r)
			if diff := cmp.Diff(tt.want, cpuOf(t, w)); diff != "" {
				t.Errorf("reserved (-want +got):\n%s", diff)
			}
			if got != tt.wantAgain {
				t.Errorf("looked at again after %v, want %v", got, tt.wantAgain)
			}
		})
	}
}

var errBoom = errors.New("boom")

// A list that fails, in whole or in part, does not mean that there is nothing.
func TestNothingIsGivenBackWhileItIsNotKnownWhatThereIs(t *testing.T) {
	for name, list := range map[string]client.ObjectList{"CloudSpaces": &v1alpha1.CloudSpaceList{}, "host namespaces": &corev1.NamespaceList{}} {
		t.Run(name, func(t *testing.T) {
			object := tenantQuota("8", reservation("2"))
			w, r := newWorld(t, one(object), one(object))
			w.cannotList = list
			if _, err := r.Reconcile(t.Context(), object); !errors.Is(err, errBoom) || len(w.calls) > 0 {
				t.Errorf("got %v after %v, want the error, and no call", err, w.calls)
			}
		})
	}
}

func TestAPassThatChangesNothingAsksNothing(t *testing.T) {
	object := tenantQuota("8", reservation("2"))
	server := all(one(object), one(cloudSpace("2", 1)), host("uid-dev", "2", "1"))
	w, r := newWorld(t, server, server)
	reconcileOnce(t, w, r)
	live := &v1alpha1.TenantQuota{}
	if err := w.server.Get(t.Context(), client.ObjectKey{Name: "alice"}, live); err != nil {
		t.Fatal(err)
	}
	w.calls = nil
	if _, err := r.Reconcile(t.Context(), live); err != nil || len(w.calls) > 0 {
		t.Errorf("the second pass made the calls %v: %v", w.calls, err)
	}
}

// Another operator that thinks it leads grants something at that very moment.
func TestALedgerThatChangedMeanwhileIsPlannedAgain(t *testing.T) {
	server := all(one(tenantQuota("2")), one(cloudSpace("2", 1)))
	w, r := newWorld(t, server, server)
	other := v1alpha1.QuotaReservation{CloudSpace: "other", UID: "uid-other", Since: metav1.NewTime(noon), Amounts: quota.Of(asked("2"))}
	w.meanwhile = func() {
		live := &v1alpha1.TenantQuota{}
		if err := w.server.Get(t.Context(), client.ObjectKey{Name: "alice"}, live); err != nil {
			t.Fatal(err)
		}
		live.Status.Reservations = append(live.Status.Reservations, other)
		if err := w.server.Status().Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
	}
	if got := reconcileOnce(t, w, r); got != step.StaleRetry {
		t.Errorf("looked at again after %v, want %v", got, step.StaleRetry)
	}
	if diff := cmp.Diff(map[string]string{"other": "2"}, cpuOf(t, w)); diff != "" {
		t.Errorf("reserved (-want +got):\n%s", diff)
	}
}

// The caches may move at any moment of a pass: what they show only then is confirmed too.
func TestNothingIsGivenBackUnconfirmed(t *testing.T) {
	for look := range 4 {
		t.Run(fmt.Sprintf("they move before they are looked at for the %dth time", look+1), func(t *testing.T) {
			server := all(one(tenantQuota("8", reservation("4"))), one(cloudSpace("4", 3)), host("uid-dev", "4", "3"))
			w, r := newWorld(t, server, all(one(tenantQuota("9", reservation("4"))), one(cloudSpace("4", 1)), host("uid-dev", "4", "1")))
			w.beforeList = func() {
				look--
				if look == -1 {
					show(t, w, all(one(cloudSpace("1", 2)), host("uid-dev", "1", "2")))
				}
			}
			reconcileOnce(t, w, r)
			if diff := cmp.Diff(map[string]string{"dev": "4"}, cpuOf(t, w)); diff != "" {
				t.Errorf("reserved (-want +got):\n%s", diff)
			}
		})
	}
}

// show has the caches show objects otherwise.
func show(t *testing.T, w *world, objects []client.Object) {
	t.Helper()
	for _, o := range objects {
		shown, _ := o.DeepCopyObject().(client.Object)
		if err := w.Get(t.Context(), client.ObjectKeyFromObject(o), shown); err != nil {
			t.Fatal(err)
		}
		o.SetResourceVersion(shown.GetResourceVersion())
		if err := w.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAQuotaThatWasLoweredSaysSo(t *testing.T) {
	server := all(one(tenantQuota("1", reservation("2"))), one(cloudSpace("2", 1)))
	w, r := newWorld(t, server, server)
	reconcileOnce(t, w, r)
	live := &v1alpha1.TenantQuota{}
	if err := w.server.Get(t.Context(), client.ObjectKey{Name: "alice"}, live); err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, c := range live.Status.Conditions {
		told = append(told, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	want := []string{
		"Ready True Enforced: ",
		"OverCommitted True HardLowered: more is reserved than spec.hard allows: cpu 1; nothing is taken away, and nothing more of it is granted",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if got := live.Status.Usage[v1alpha1.QuotaCPU]; got != "2/1" {
		t.Errorf("usage is %s, want 2/1", got)
	}
}

func reconcileOnce(t *testing.T, w *world, r *Reconciler) time.Duration {
	t.Helper()
	object := &v1alpha1.TenantQuota{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "alice"}, object); err != nil {
		t.Fatal(err)
	}
	result, err := r.Reconcile(t.Context(), object)
	if err != nil {
		t.Fatal(err)
	}
	return result.RequeueAfter
}

func cpuOf(t *testing.T, w *world) map[string]string {
	t.Helper()
	live := &v1alpha1.TenantQuota{}
	if err := w.server.Get(t.Context(), client.ObjectKey{Name: "alice"}, live); err != nil {
		t.Fatal(err)
	}
	reserved := map[string]string{}
	for _, r := range live.Status.Reservations {
		cpu := r.Amounts[v1alpha1.QuotaCPU]
		reserved[r.CloudSpace] = cpu.String()
	}
	return reserved
}
