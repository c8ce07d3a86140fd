// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// recorded notes what is recorded, and on what.
type recorded struct {
	t   *testing.T
	all []string
}

// Eventf notes an event.
func (r *recorded) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) { //nolint:revive // the interface has as many.
	ref, err := reference.GetReference(Scheme(), regarding)
	if err != nil {
		r.t.Fatal(err)
	}
	r.all = append(r.all, fmt.Sprintf("%s %s %s %s: %s", ref.APIVersion, ref.UID, kind, reason, fmt.Sprintf(note, args...)))
}

func TestEventsOnCloudSpacesAreForTenants(t *testing.T) {
	t.Parallel()
	space := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "tenant-a", UID: "3f1c9a52-7d84-4e0b-9c61-d2a8b75e4f10"}}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	r := &recorded{t: t}
	recorder := tenantsRecorder{r}
	recorder.Eventf(space, nil, corev1.EventTypeWarning, v1alpha1.ReasonImagePullFailed, "Reconcile", "%s", "image canary cannot be pulled")
	recorder.Eventf(tenant, nil, corev1.EventTypeNormal, "Ready", "Reconcile", "%s", "the Tenant is ready")
	const told = "Warning ImagePullFailed: an image of the control plane cannot be fetched at the moment; it is tried again"
	want := []string{
		"tenancy.kubeopera.io/v1alpha1 3f1c9a52-7d84-4e0b-9c61-d2a8b75e4f10 " + told,
		"view.kubeopera.io/v1alpha1 6502e6c1-cf5c-4afd-9e88-ce2c60f8704b " + told,
		"tenancy.kubeopera.io/v1alpha1 1 Normal Ready: the Tenant is ready",
	}
	if diff := cmp.Diff(want, r.all); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
