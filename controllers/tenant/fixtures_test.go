// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/retry"
	"github.com/tantilium/cloud-runner/internal/step"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

// noon is when the stories of these tests begin.
var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

var errBoom = errors.New("boom")

func testTenant(alter ...func(*v1alpha1.Tenant)) *v1alpha1.Tenant {
	object := &v1alpha1.Tenant{
		TypeMeta:   metav1.TypeMeta{APIVersion: "tenancy.kubeopera.io/v1alpha1", Kind: "Tenant"},
		ObjectMeta: metav1.ObjectMeta{Name: "alice-default", UID: "uid-alice", Generation: 1, CreationTimestamp: metav1.NewTime(noon)},
	}
	object.Spec.DefaultCloudSpace.Template.Spec = spec("2")
	for _, a := range alter {
		a(object)
	}
	return object
}

func testScope(object *v1alpha1.Tenant) *scope {
	return &scope{object: object, owner: apply.Owner{Tenant: object.Name, UID: object.UID}, backoff: retry.Backoff{Base: 5 * time.Second, Max: 5 * time.Minute}}
}

func spec(cpu string) v1alpha1.CloudSpaceSpec {
	return v1alpha1.CloudSpaceSpec{
		Resources: v1alpha1.CloudSpaceResources{
			CPU: resource.MustParse(cpu), Memory: resource.MustParse("4Gi"), Storage: resource.MustParse("10Gi"), Pods: 50,
		},
		ControlPlane: v1alpha1.ControlPlane{Size: "Small", Etcd: v1alpha1.Etcd{Storage: resource.MustParse("2Gi")}},
	}
}

// following is the default CloudSpace in a phase, with what its conditions say.
func following(phase v1alpha1.CloudSpacePhase, conditions ...metav1.Condition) *v1alpha1.CloudSpace {
	return &v1alpha1.CloudSpace{
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "tenant-alice-default", UID: "uid-cloudspace", Generation: 1},
		Status:     v1alpha1.CloudSpaceStatus{Phase: phase, ObservedGeneration: 1, Conditions: conditions},
	}
}

func says(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 1}
}

// outcomes runs the real list of steps with nothing behind it but the error of one of them.
func outcomes(t *testing.T, stops string, err error) []step.Outcome {
	t.Helper()
	steps := (&Reconciler{}).steps()
	known := stops == ""
	for i := range steps {
		var outcome error
		if steps[i].Proves == stops {
			outcome, known = err, true
		}
		steps[i].Do = func(context.Context, *scope) error { return outcome }
	}
	if !known {
		t.Fatalf("there is no step %s", stops)
	}
	return step.Run(t.Context(), nil, steps)
}

// ownNamespace and ownSecret are what was made for the Tenant.
func ownNamespace(s *scope) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-alice-default", UID: "uid-namespace", Labels: s.owner.Labels()}}
}

func ownSecret(s *scope) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "tenant-alice-default-kubeconfig", UID: "uid-secret", Labels: s.owner.Labels()}}
}

// compareGolden compares with a file of testdata, or writes it with -update.
func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); if it should, run the test with -update:\n%s", path, diff)
	}
}

// countedQuota is the ResourceQuota of the tenant's namespace, as we made it and Kubernetes has counted.
func countedQuota(s *scope) *corev1.ResourceQuota {
	quota := desiredObjectQuota(s, noon)
	quota.Labels = s.owner.Labels()
	quota.Status.Hard = quota.Spec.Hard
	quota.Status.Used = corev1.ResourceList{cloudSpaceCount: resource.MustParse("1")}
	return quota
}
