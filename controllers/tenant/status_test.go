// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/conditions/conditionstest"
	"github.com/tantilium/cloud-runner/internal/step"
)

func TestPhaseFollowsTheDefaultCloudSpace(t *testing.T) {
	ready := []metav1.Condition{says("Ready", "True", "Provisioned", "")}
	stalled := []metav1.Condition{says("Stalled", "True", "NotOurs", "x")}
	tests := map[string]struct {
		conditions []metav1.Condition
		cloudSpace *v1alpha1.CloudSpace
		wasReady   bool
		want       v1alpha1.TenantPhase
	}{
		"there is none yet":                         {want: "Pending"},
		"it has no phase yet":                       {cloudSpace: following(""), want: "Pending"},
		"it is pending":                             {cloudSpace: following("Pending"), want: "Pending"},
		"it is being provisioned":                   {cloudSpace: following("Provisioning"), want: "Provisioning"},
		"Flux is being installed":                   {cloudSpace: following("InstallingFlux"), want: "InstallingFlux"},
		"it is active, the Tenant is not ready yet": {cloudSpace: following("Active"), want: "InstallingFlux"},
		"everything is proven":                      {conditions: ready, cloudSpace: following("Active"), want: "Ready"},
		"it has failed":                             {conditions: stalled, cloudSpace: following("Failed"), want: "Failed"},
		"it has failed, the Tenant has not seen it": {cloudSpace: following("Failed"), want: "Provisioning"},
		"the Tenant itself cannot get on":           {conditions: stalled, want: "Failed"},
		"it is being deleted by itself":             {cloudSpace: following("Deleting"), want: "Pending"},
		"an outage after the first Ready":           {cloudSpace: following("Active"), wasReady: true, want: "Ready"},
		"a failure after the first Ready":           {conditions: stalled, cloudSpace: following("Failed"), wasReady: true, want: "Ready"},
		"it is suspended":                           {cloudSpace: following("Suspended"), wasReady: true, want: "Suspended"},
		"it was deleted after the first Ready":      {wasReady: true, want: "Ready"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := phase(v1alpha1.TenantStatus{Conditions: tt.conditions}, tt.cloudSpace, tt.wasReady); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestFollowSaysOfTheTenantWhatTheCloudSpaceSaysOfItself(t *testing.T) {
	tests := map[string]struct {
		cloudSpace                         *v1alpha1.CloudSpace
		wantClass, wantReason, wantMessage string
	}{
		"ready": {cloudSpace: following("Active", says("Ready", "True", "Provisioned", ""))},
		"on its way": {
			cloudSpace: following("Provisioning", says("Ready", "False", "Installing", "installing the control plane"), says("Reconciling", "True", "Progressing", "x")),
			wantClass:  "Wait", wantReason: "Installing", wantMessage: "installing the control plane",
		},
		"it cannot get on: the root reason": {
			cloudSpace: following("Failed", says("Ready", "False", "NotOurs", "x"), says("Stalled", "True", "NotOurs", "Namespace a is not ours")),
			wantClass:  "Terminal", wantReason: "NotOurs", wantMessage: "Namespace a is not ours",
		},
		"an outage": {
			cloudSpace: following("Active", says("Ready", "False", "Degraded", "waiting for etcd"), says("Reconciling", "True", "Progressing", "x")),
			wantClass:  "Wait", wantReason: "Degraded", wantMessage: "waiting for etcd",
		},
		"suspended": {
			cloudSpace: following("Suspended", says("Ready", "False", "CloudSpaceSuspended", "suspended")),
			wantClass:  "Wait", wantReason: "CloudSpaceSuspended", wantMessage: "suspended",
		},
		"nobody has looked at it yet": {
			cloudSpace: following(""), wantClass: "Wait", wantReason: "CloudSpaceNotReady", wantMessage: "waiting for the default CloudSpace",
		},
		"what it says is about its spec before": {
			cloudSpace: func() *v1alpha1.CloudSpace {
				c := following("Active", says("Ready", "True", "Provisioned", ""))
				c.Generation = 2
				return c
			}(),
			wantClass: "Wait", wantReason: "CloudSpaceNotReady", wantMessage: "waiting for the default CloudSpace",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := follow(tt.cloudSpace)
			if class := step.Class(err); class != tt.wantClass {
				t.Fatalf("got %v of class %q, want %q", err, class, tt.wantClass)
			}
			if err == nil {
				return
			}
			if reason, message := step.Explain(err, ""); reason != tt.wantReason || message != tt.wantMessage {
				t.Errorf("got %q: %q, want %q: %q", reason, message, tt.wantReason, tt.wantMessage)
			}
		})
	}
}

func TestNewStatusSaysWhatWasObserved(t *testing.T) {
	known := v1alpha1.TenantStatus{
		Namespace: "tenant-alice-default", NamespaceUID: "uid-namespace", KubeconfigSecret: "tenant-alice-default-kubeconfig",
	}
	tests := map[string]struct {
		previous v1alpha1.TenantStatus
		observed func(*scope)
		want     v1alpha1.TenantStatus
	}{
		"nothing is there": {},
		"the namespace": {
			observed: func(s *scope) { s.observed.namespace = ownNamespace(s) },
			want:     v1alpha1.TenantStatus{Namespace: "tenant-alice-default", NamespaceUID: "uid-namespace"},
		},
		"a namespace of somebody else is never named, and its UID least of all": {
			observed: func(s *scope) {
				s.observed.namespace = ownNamespace(s)
				s.observed.namespace.Labels["tenancy.kubeopera.io/owner-uid"] = "uid-bob"
			},
		},
		"a namespace that could not be made is not named": {
			observed: func(s *scope) {
				s.observed.namespace = ownNamespace(s)
				s.observed.namespace.UID = ""
			},
		},
		"the kubeconfig": {
			observed: func(s *scope) { s.observed.namespace, s.observed.kubeconfig = ownNamespace(s), ownSecret(s) },
			want:     known,
		},
		"a Secret of somebody else is not named": {
			observed: func(s *scope) {
				s.observed.kubeconfig = ownSecret(s)
				s.observed.kubeconfig.Labels["tenancy.kubeopera.io/owner-uid"] = "uid-bob"
			},
		},
		"what was known stays when a pass does not get that far": {previous: known, want: known},
		"CloudSpaces are counted": {
			observed: func(s *scope) {
				s.observed.cloudSpaces = []v1alpha1.CloudSpace{*following("Active"), *following("Failed"), *following("Active")}
			},
			want: v1alpha1.TenantStatus{CloudSpaces: v1alpha1.CloudSpaceCounts{Total: 3, Active: 2}},
		},
		"the sums of the ledger, and nothing else of it": {
			observed: func(s *scope) { s.observed.quota = ledger("16", "6", "10") },
			want:     v1alpha1.TenantStatus{Quota: v1alpha1.QuotaSums{Hard: hard("16"), Reserved: hard("6"), Free: hard("10")}},
		},
		"a quota that is not limited": {
			observed: func(s *scope) {
				s.observed.quota = ledger("16", "6", "10")
				s.observed.quota.Status.Hard, s.observed.quota.Status.Free = nil, nil
			},
			want: v1alpha1.TenantStatus{Quota: v1alpha1.QuotaSums{Reserved: hard("6")}},
		},
		"a ledger that is not kept yet": {
			observed: func(s *scope) {
				s.observed.quota = &v1alpha1.TenantQuota{Spec: v1alpha1.TenantQuotaSpec{Hard: hard("16")}}
			},
		},
		"the ledger is told when the default CloudSpace was looked at": {
			observed: func(s *scope) {
				s.observed.quota, s.observed.cloudSpace = ledger("16", "2", "14"), following("Pending")
			},
			want: v1alpha1.TenantStatus{Quota: v1alpha1.QuotaSums{Hard: hard("16"), Reserved: hard("2"), Free: hard("14")}},
		},
		"not before: it is about to change": {
			observed: func(s *scope) { s.observed.quota, s.observed.cloudSpace = ledger("16", "0", "16"), following("") },
		},
		"what was told stays while a new default CloudSpace was not looked at": {
			previous: v1alpha1.TenantStatus{Quota: v1alpha1.QuotaSums{Hard: hard("16")}},
			observed: func(s *scope) { s.observed.quota, s.observed.cloudSpace = ledger("16", "0", "16"), following("") },
			want:     v1alpha1.TenantStatus{Quota: v1alpha1.QuotaSums{Hard: hard("16")}},
		},
		"a ledger that is gone": {previous: v1alpha1.TenantStatus{Quota: v1alpha1.QuotaSums{Hard: hard("16")}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := testTenant(func(o *v1alpha1.Tenant) { o.Status, o.Generation = tt.previous, 7 })
			s := testScope(object)
			if tt.observed != nil {
				tt.observed(s)
			}
			before := object.DeepCopy()
			got := newStatus(s, outcomes(t, "NamespaceReady", step.Wait("Terminating", "waiting")), noon)
			if got.ObservedGeneration != 7 {
				t.Errorf("observedGeneration is %d, want 7", got.ObservedGeneration)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("newStatus altered the object:\n%s", diff)
			}
			got.Conditions, got.Phase, got.Timeline, got.ObservedGeneration = nil, "", nil, 0
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// ledger has these sums of CPU, and one reservation.
func ledger(limit, reserved, free string) *v1alpha1.TenantQuota {
	return &v1alpha1.TenantQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "alice-default"},
		Status: v1alpha1.TenantQuotaStatus{
			Hard: hard(limit), Reserved: hard(reserved), Free: hard(free),
			Reservations: []v1alpha1.QuotaReservation{{CloudSpace: "default", Amounts: hard(reserved)}},
		},
	}
}

// What wakes a Tenant, and what is written then: a ledger changes with each of hundreds of CloudSpaces.
func TestOnlyOtherSumsOfTheLedgerAreNews(t *testing.T) {
	tests := map[string]struct {
		alter func(*v1alpha1.TenantQuota)
		want  bool
	}{
		"nothing changed":                             {alter: func(*v1alpha1.TenantQuota) {}},
		"the same amounts, written otherwise":         {alter: func(q *v1alpha1.TenantQuota) { q.Status = ledger("16000m", "6000m", "10000m").Status }},
		"who has the same sum changed":                {alter: func(q *v1alpha1.TenantQuota) { q.Status.Reservations[0].CloudSpace = "staging" }},
		"somebody waits":                              {alter: func(q *v1alpha1.TenantQuota) { q.Status.WaitingCount = 1 }},
		"a limit that is not enforced yet":            {alter: func(q *v1alpha1.TenantQuota) { q.Spec.Hard = hard("17") }},
		"more is reserved":                            {alter: func(q *v1alpha1.TenantQuota) { q.Status = ledger("16", "7", "9").Status }, want: true},
		"another limit is enforced":                   {alter: func(q *v1alpha1.TenantQuota) { q.Status = ledger("17", "6", "11").Status }, want: true},
		"the limit was taken away, as much is in use": {alter: func(q *v1alpha1.TenantQuota) { q.Status.Hard, q.Status.Free = nil, nil }, want: true},
		"only what is free changed":                   {alter: func(q *v1alpha1.TenantQuota) { q.Status.Free = hard("9") }, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before, after := ledger("16", "6", "10"), ledger("16", "6", "10")
			tt.alter(after)
			if got := sumsChanged(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tt.want {
				t.Errorf("it wakes the Tenant: %v, want %v", got, tt.want)
			}
			if got := rewrites(t, before, after); got != tt.want {
				t.Errorf("the status is written: %v, want %v", got, tt.want)
			}
		})
	}
}

// rewrites tells whether a pass writes the status of a Tenant when it finds one ledger after the other, and nothing else is new.
func rewrites(t *testing.T, before, after *v1alpha1.TenantQuota) bool {
	t.Helper()
	object := testTenant()
	s := testScope(object)
	s.observed.quota = before
	object.Status = newStatus(s, outcomes(t, "", nil), noon)
	w := newWorld(t, object)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	version := object.ResourceVersion
	s.observed.quota = after
	if err := w.reconciler().writeStatus(t.Context(), object, newStatus(s, outcomes(t, "", nil), noon)); err != nil {
		t.Fatal(err)
	}
	return object.ResourceVersion != version
}

func TestDeletingStatus(t *testing.T) {
	object := testTenant(func(o *v1alpha1.Tenant) { o.DeletionTimestamp = &metav1.Time{Time: noon} })
	s := testScope(object)
	s.observed.cloudSpaces = []v1alpha1.CloudSpace{*following("Deleting")}
	s.observed.quota = ledger("16", "2", "14")
	object.Status = deletingStatus(s, []step.Outcome{{Proves: "RemoveCloudSpaces", Attempted: true, Err: step.Wait("Remaining", "waiting for 1 CloudSpaces")}}, noon.Add(time.Second))
	if object.Status.Phase != "Deleting" || object.Status.CloudSpaces.Total != 1 {
		t.Errorf("phase %s with %d CloudSpaces, want Deleting with 1", object.Status.Phase, object.Status.CloudSpaces.Total)
	}
	if free := object.Status.Quota.Free[v1alpha1.QuotaCPU]; free.String() != "14" {
		t.Errorf("free is %s, want 14: what is given back can be seen", free.String())
	}
	s.observed.cloudSpaces = nil
	if got := deletingStatus(s, nil, noon.Add(time.Minute)).Quota; !equality.Semantic.DeepEqual(got, v1alpha1.QuotaSums{}) {
		t.Errorf("it has no CloudSpace left and tells %+v", got)
	}
	if err := conditionstest.Check(t.Context(), object); err != nil {
		t.Error(err)
	}
}

// What a Tenant gives back on its way down can be seen on it.
func TestATenantThatIsTakenDownTellsItsLedger(t *testing.T) {
	object := testTenant(func(o *v1alpha1.Tenant) {
		o.Finalizers, o.DeletionTimestamp = []string{v1alpha1.FinalizerTenant}, &metav1.Time{Time: noon}
	})
	w := newWorld(t, object, owned(following("Active")), ledger("16", "2", "14"))
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconciler().takeDown(t.Context(), testScope(object)); err != nil {
		t.Fatal(err)
	}
	if reserved := object.Status.Quota.Reserved[v1alpha1.QuotaCPU]; reserved.String() != "2" {
		t.Errorf("reserved is %s, want 2", reserved.String())
	}
}

// These files say what should be of what was observed: they must not be able to ask anybody.
func TestPureFilesTalkToNobody(t *testing.T) {
	forbidden := []string{"sigs.k8s.io/controller-runtime/pkg/client", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest", "net/http", "os", "context"}
	for _, name := range []string{"status.go", "desired.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); slices.Contains(forbidden, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
	}
}
