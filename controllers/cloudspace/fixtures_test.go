// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/quota"
	"github.com/tantilium/cloud-runner/internal/step"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

// noon is when the stories of these tests begin.
var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

var errBoom = errors.New("boom")

func testPlatform(t *testing.T) *configv1alpha1.PlatformConfig {
	t.Helper()
	config, err := configv1alpha1.Load(filepath.Join("testdata", "platform-config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// testCloudSpace is what the API server makes of an empty spec.
func testCloudSpace(name string, alter ...func(*v1alpha1.CloudSpace)) *v1alpha1.CloudSpace {
	object := &v1alpha1.CloudSpace{
		TypeMeta: metav1.TypeMeta{APIVersion: "tenancy.kubeopera.io/v1alpha1", Kind: "CloudSpace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "tenant-alice-default", UID: "uid-1", Generation: 1, CreationTimestamp: metav1.NewTime(noon),
		},
		Spec: v1alpha1.CloudSpaceSpec{
			Resources: v1alpha1.CloudSpaceResources{
				CPU: resource.MustParse("2"), Memory: resource.MustParse("4Gi"), Storage: resource.MustParse("10Gi"), Pods: 50,
			},
			ControlPlane: v1alpha1.ControlPlane{Size: "Small", Etcd: v1alpha1.Etcd{Storage: resource.MustParse("2Gi")}},
		},
	}
	for _, a := range alter {
		a(object)
	}
	return object
}

// outcomes runs the real list of steps with nothing behind it but the errors that are given.
func outcomes(t *testing.T, r *Reconciler, errs map[string]error) []step.Outcome {
	t.Helper()
	steps := r.steps()
	unknown := len(errs)
	for i := range steps {
		err, ok := errs[steps[i].Proves]
		if ok {
			unknown--
		}
		steps[i].Do = func(context.Context, *scope) error { return err }
	}
	if unknown != 0 {
		t.Fatalf("%v names a step that there is none of", errs)
	}
	return step.Run(t.Context(), nil, steps)
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

// ownSecret is the kubeconfig Secret that was stored for a CloudSpace.
func ownSecret(s *scope) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.names.KubeconfigSecret(), UID: "uid-secret", Labels: s.owner.Labels()}}
}

func updateOf(before, after client.Object) event.UpdateEvent {
	return event.UpdateEvent{ObjectOld: before, ObjectNew: after}
}

// errOr lets a test explain an error that should not be nil.
func errOr(err error) error {
	if err == nil {
		return errBoom
	}
	return err
}

// grantedScope is a pass over a CloudSpace that is granted all that it asks for.
func grantedScope(object *v1alpha1.CloudSpace) *scope {
	s := newScope(object)
	s.granted = object.Spec.Resources
	return s
}

// granting is the TenantQuota of a CloudSpace's tenant with all that the CloudSpace asks for reserved for it.
func granting(object *v1alpha1.CloudSpace) *v1alpha1.TenantQuota {
	return &v1alpha1.TenantQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "alice-default", UID: "uid-quota"},
		Status: v1alpha1.TenantQuotaStatus{Reservations: []v1alpha1.QuotaReservation{{
			CloudSpace: object.Name, UID: string(object.UID), Generation: math.MaxInt64, Since: metav1.NewTime(noon), Amounts: quota.Of(object.Spec.Resources),
		}}},
	}
}
