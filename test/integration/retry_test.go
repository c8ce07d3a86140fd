// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// asManual is the body of the patch in the product's manual.
const asManual = `{"status":{"phase":"Pending"}}`

const retryAnnotation = "tenancy.kubeopera.io/retry-requested"

func wish(t *testing.T, object client.Object) {
	t.Helper()
	if err := api.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(asManual))); err != nil {
		t.Fatal(err)
	}
}

// A failure is counted on the CloudSpace and shown on its Tenant, with what it failed with and when it is tried next.
func TestFailuresAreCountedAndToldOnBoth(t *testing.T) {
	t.Parallel()
	object := create(t, tenant("retry-told", func(o *v1alpha1.Tenant) {
		o.Spec.DefaultCloudSpace.Template.Spec.KubernetesVersion = "v1.20.0"
	}))
	reach(t, object, "Failed")
	eventually(t, func(g gomega.Gomega) {
		for _, o := range []client.Object{object, cloudSpace("retry-told", "default")} {
			g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(gomega.Succeed())
			account := retryOf(o)
			g.Expect(account.Attempts).To(gomega.BeNumerically(">=", 2), "%T is tried again by itself", o)
			g.Expect(account.LastError).NotTo(gomega.BeNil())
			g.Expect(account.LastError.Reason).To(gomega.Equal("UnsupportedVersion"))
			g.Expect(account.LastError.Class).To(gomega.Equal(v1alpha1.ErrorTerminal))
			g.Expect(account.NextRetryTime).NotTo(gomega.BeNil())
		}
	})
}

// The wish of the manual becomes an annotation, once for each time that the object is in a phase, and changes nothing else.
func TestTheManualsPatchAsksForARetry(t *testing.T) {
	t.Parallel()
	object := create(t, tenant("retry-wish", func(o *v1alpha1.Tenant) {
		o.Spec.DefaultCloudSpace.Template.Spec.KubernetesVersion = "v1.20.0"
	}))
	reach(t, object, "Failed")
	generation := object.Generation
	wish(t, object)
	first := object.Annotations[retryAnnotation]
	if first == "" || object.Generation != generation || object.Status.Phase != "Failed" {
		t.Fatalf("after the patch: annotation %q, generation %d instead of %d, phase %s", first, object.Generation, generation, object.Status.Phase)
	}
	wish(t, object)
	if second := object.Annotations[retryAnnotation]; second != first {
		t.Errorf("the same wish in the same phase asks again: %q, then %q", first, second)
	}
	eventually(t, func(g gomega.Gomega) {
		for _, o := range []client.Object{object, cloudSpace("retry-wish", "default")} {
			g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(o), o)).To(gomega.Succeed())
			g.Expect(retryOf(o).LastHandledRequest).To(gomega.Equal(first), "%T", o)
		}
	})
}

// Where there is nothing to retry, asking for it does no harm.
func TestAskingAReadyTenantForARetryIsHarmless(t *testing.T) {
	t.Parallel()
	object := create(t, tenant("retry-ready"))
	reach(t, object, "Ready")
	before := get(t, secret("kubeopera-system", "tenant-retry-ready-kubeconfig"))
	wish(t, object)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
		g.Expect(object.Status.Retry.LastHandledRequest).To(gomega.Equal(object.Annotations[retryAnnotation]))
		g.Expect(object.Status.Phase).To(gomega.Equal(v1alpha1.TenantReady))
		g.Expect(object.Status.Retry.Attempts).To(gomega.BeZero())
	})
	if phases := statuses.phases(t, object); phases[len(phases)-1] != "Ready" {
		t.Errorf("phases were %v", phases)
	}
	if after := get(t, secret("kubeopera-system", "tenant-retry-ready-kubeconfig")); after.ResourceVersion != before.ResourceVersion {
		t.Error("the kubeconfig was written again")
	}
}

func retryOf(object client.Object) v1alpha1.RetryStatus {
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		return o.Status.Retry
	case *v1alpha1.CloudSpace:
		return o.Status.Retry
	default:
		return v1alpha1.RetryStatus{}
	}
}
