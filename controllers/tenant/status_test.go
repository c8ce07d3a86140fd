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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestDeletingStatus(t *testing.T) {
	object := testTenant(func(o *v1alpha1.Tenant) { o.DeletionTimestamp = &metav1.Time{Time: noon} })
	s := testScope(object)
	s.observed.cloudSpaces = []v1alpha1.CloudSpace{*following("Deleting")}
	object.Status = deletingStatus(s, []step.Outcome{{Proves: "RemoveCloudSpaces", Attempted: true, Err: step.Wait("Remaining", "waiting for 1 CloudSpaces")}}, noon.Add(time.Second))
	if object.Status.Phase != "Deleting" || object.Status.CloudSpaces.Total != 1 {
		t.Errorf("phase %s with %d CloudSpaces, want Deleting with 1", object.Status.Phase, object.Status.CloudSpaces.Total)
	}
	if err := conditionstest.Check(t.Context(), object); err != nil {
		t.Error(err)
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
