// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func refusedDeletion(t *testing.T, object client.Object) {
	t.Helper()
	if err := api.Delete(t.Context(), object); err == nil || !strings.Contains(err.Error(), "it is protected from deletion; set spec.deletionProtection to false first") {
		t.Fatalf("deleting %s: %v, want it refused", object.GetName(), err)
	}
}

const lifted = `{"spec":{"deletionProtection":false}}`

func TestWhatIsProtectedIsNotDeletedUntilTheProtectionIsLifted(t *testing.T) {
	t.Parallel()
	object := create(t, tenant("protected", func(o *v1alpha1.Tenant) { o.Spec.DeletionProtection = true }))
	reach(t, object, "Ready")
	kept := create(t, cloudSpace("protected", "kept"))
	merge(t, kept, `{"spec":{"deletionProtection":true}}`)
	reach(t, kept, "Active")

	refusedDeletion(t, object)
	refusedDeletion(t, kept)
	merge(t, object, lifted)
	if err := api.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	says(t, object, "Ready False Deleting", "CloudSpace kept is protected from deletion: set its spec.deletionProtection to false")
	gone(t, cloudSpace("protected", "default"))
	if left := get(t, kept); !left.DeletionTimestamp.IsZero() {
		t.Error("the protected CloudSpace is being deleted")
	}
	merge(t, kept, lifted)
	gone(t, object)
	gone(t, kept)
}
