// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/conditions/conditionstest"
	"github.com/tantilium/cloud-runner/internal/step"
)

func TestPhase(t *testing.T) {
	is := func(kinds ...string) (conditions []metav1.Condition) {
		for _, kind := range kinds {
			conditions = append(conditions, metav1.Condition{Type: kind, Status: "True"})
		}
		return conditions
	}
	tests := map[string]struct {
		conditions []metav1.Condition
		wasActive  bool
		want       v1alpha1.CloudSpacePhase
	}{
		"nothing is proven":                {want: "Pending"},
		"quota is granted":                 {conditions: is("QuotaReserved"), want: "Provisioning"},
		"the control plane runs":           {conditions: is("QuotaReserved", "ControlPlaneReady"), want: "Provisioning"},
		"there is a kubeconfig":            {conditions: is("QuotaReserved", "ControlPlaneReady", "KubeconfigReady"), want: "InstallingFlux"},
		"everything is proven":             {conditions: is("Ready", "QuotaReserved", "KubeconfigReady", "FluxReady"), want: "Active"},
		"it cannot get on":                 {conditions: is("Stalled", "QuotaReserved", "KubeconfigReady"), want: "Failed"},
		"it cannot get on before quota":    {conditions: is("Stalled"), want: "Failed"},
		"an outage after the first Active": {conditions: is("Reconciling", "QuotaReserved"), wasActive: true, want: "Active"},
		"it is suspended": {
			conditions: []metav1.Condition{{Type: "Ready", Status: "False", Reason: "CloudSpaceSuspended"}}, wasActive: true, want: "Suspended",
		},
		"it is being suspended": {
			conditions: append(is("Reconciling"), metav1.Condition{Type: "Ready", Status: "False", Reason: "CloudSpaceSuspended"}), wasActive: true, want: "Active",
		},
		"it cannot get on after the first Active": {conditions: is("Stalled"), wasActive: true, want: "Active"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := phase(tt.conditions, tt.wasActive); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// What a status says beside its conditions, which the lifecycle story shows.
func TestNewStatusSaysWhatWasObserved(t *testing.T) {
	running := v1alpha1.CloudSpaceVersions{Kubernetes: "v1.36.0", VCluster: "0.36.1", Flux: "0.1.0"}
	known := v1alpha1.CloudSpaceStatus{
		HostName: "alice-default", HostNamespace: "vcluster-alice-default", Endpoint: "https://alice-default.vcluster-alice-default.svc:443",
		Versions:   running,
		Kubeconfig: v1alpha1.KubeconfigStatus{Secret: "cloudspace-alice-default-kubeconfig", Expires: &metav1.Time{Time: expires}},
	}
	tests := map[string]struct {
		previous v1alpha1.CloudSpaceStatus
		object   func(*v1alpha1.CloudSpace)
		observed func(*scope)
		want     v1alpha1.CloudSpaceStatus
	}{
		"the names are known from the start": {
			want: v1alpha1.CloudSpaceStatus{HostName: "alice-default", HostNamespace: "vcluster-alice-default"},
		},
		"there are none outside of a tenant's namespace": {
			object: func(c *v1alpha1.CloudSpace) { c.Namespace = "default" },
		},
		"versions, endpoint and kubeconfig, once they are there": {
			observed: func(s *scope) {
				s.observed.running, s.observed.kubeconfig = running, ownSecret(s)
				s.observed.credentials = &credentials{server: "https://alice-default.vcluster-alice-default.svc:443", expires: expires}
			},
			want: known,
		},
		"they stay when a pass does not get that far": {previous: known, want: known},
		"a new version of the control plane alone": {
			previous: known,
			observed: func(s *scope) {
				s.observed.running = v1alpha1.CloudSpaceVersions{Kubernetes: "v1.36.1", VCluster: "0.36.2"}
			},
			want: func() v1alpha1.CloudSpaceStatus {
				s := *known.DeepCopy()
				s.Versions = v1alpha1.CloudSpaceVersions{Kubernetes: "v1.36.1", VCluster: "0.36.2", Flux: "0.1.0"}
				return s
			}(),
		},
		"a Secret of somebody else is not named": {
			observed: func(s *scope) {
				s.observed.credentials = &credentials{server: "https://alice-default.vcluster-alice-default.svc:443", expires: expires}
				s.observed.kubeconfig = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "uid-x", Labels: map[string]string{v1alpha1.LabelOwnerUID: "uid-2"}}}
			},
			want: v1alpha1.CloudSpaceStatus{HostName: "alice-default", HostNamespace: "vcluster-alice-default"},
		},
		"a Secret that could not be stored is not named": {
			observed: func(s *scope) {
				s.observed.credentials = &credentials{server: "https://alice-default.vcluster-alice-default.svc:443", expires: expires}
				s.observed.kubeconfig = ownSecret(s)
				s.observed.kubeconfig.UID = ""
			},
			want: v1alpha1.CloudSpaceStatus{HostName: "alice-default", HostNamespace: "vcluster-alice-default"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := testCloudSpace("default", func(c *v1alpha1.CloudSpace) { c.Status = tt.previous; c.Generation = 7 })
			if tt.object != nil {
				tt.object(object)
			}
			s := grantedScope(object)
			if tt.observed != nil {
				tt.observed(s)
			}
			before := object.DeepCopy()
			r := &Reconciler{Platform: testPlatform(t)}
			got := newStatus(s, outcomes(t, r, map[string]error{"QuotaReserved": step.Wait("TenantNotFound", "waiting")}), noon)
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

func TestTheReportOfTakingDown(t *testing.T) {
	r := &Reconciler{Platform: testPlatform(t)}
	down := func(errs map[string]error) []step.Outcome {
		var made []step.Outcome
		stopped := false
		for _, s := range r.teardown() {
			o := step.Outcome{Proves: s.Proves, Attempted: !stopped}
			if !stopped {
				o.Err = errs[s.Proves]
				stopped = o.Err != nil
			}
			made = append(made, o)
		}
		return made
	}
	long := strings.Repeat("ü", 2000)
	tests := map[string]struct {
		errs map[string]error
		want []v1alpha1.DeletionStep
	}{
		"the first step waits": {
			errs: map[string]error{"ReleaseInner": step.Wait("Remaining", "waiting for release a")},
			want: []v1alpha1.DeletionStep{{Step: "ReleaseInner", Message: "waiting for release a"}, {Step: "ReleaseControlPlane"}, {Step: "RemoveKubeconfig"}, {Step: "RemoveNamespace"}, {Step: "VerifyGone"}},
		},
		"a later step waits": {
			errs: map[string]error{"RemoveNamespace": step.Wait("Remaining", "waiting for the host namespace")},
			want: []v1alpha1.DeletionStep{
				{Step: "ReleaseInner", Done: true},
				{Step: "ReleaseControlPlane", Done: true},
				{Step: "RemoveKubeconfig", Done: true},
				{Step: "RemoveNamespace", Message: "waiting for the host namespace"},
				{Step: "VerifyGone"},
			},
		},
		"an error is cut to what the API takes": {
			errs: map[string]error{"RemoveKubeconfig": errors.New(long)},
			want: []v1alpha1.DeletionStep{
				{Step: "ReleaseInner", Done: true},
				{Step: "ReleaseControlPlane", Done: true},
				{Step: "RemoveKubeconfig", Message: strings.Repeat("ü", 510) + "..."},
				{Step: "RemoveNamespace"},
				{Step: "VerifyGone"},
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := testCloudSpace("default", func(c *v1alpha1.CloudSpace) {
				c.DeletionTimestamp = &metav1.Time{Time: noon}
				c.Status.Phase = "Active"
				c.Status.Timeline = []v1alpha1.PhaseTransition{{Phase: "Active", Time: metav1.NewTime(noon)}}
				c.Status.Deletion = []v1alpha1.DeletionStep{{Step: "Old", Done: true}}
			})
			object.Status = deletingStatus(grantedScope(object), down(tt.errs), noon.Add(time.Minute))
			if diff := cmp.Diff(tt.want, object.Status.Deletion); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			if object.Status.Phase != "Deleting" {
				t.Errorf("phase is %s, want Deleting", object.Status.Phase)
			}
			if err := conditionstest.Check(t.Context(), object); err != nil {
				t.Error(err)
			}
		})
	}
}

// These files say what should be of what was observed: they must not be able to ask anybody, or to look at the clock.
func TestPureFilesTalkToNobody(t *testing.T) {
	forbidden := []string{"sigs.k8s.io/controller-runtime/pkg/client", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest", "net/http", "os", "context"}
	for _, name := range []string{"status.go", "desired.go", "values.go", "release.go", "kubeconfig.go", "workloads.go", "amounts.go", "shares.go", "quotas.go", "usage.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); slices.Contains(forbidden, path) {
				t.Errorf("%s imports %s", name, path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Now" {
				t.Errorf("%s looks at the clock", name)
			}
			return true
		})
	}
}
