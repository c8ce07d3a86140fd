// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// The first Ready stays, so that the phase does not tell one outage from another: the wish counts once for each, however often it is
// applied, and does not count again after a try that failed.
func TestTheManualsPatchAsksOnceForEachOutage(t *testing.T) {
	t.Parallel()
	const id = "retry-outage"
	object := reach(t, create(t, tenant(id)), "Ready")
	asked := []string{""}
	asks := func(when string) {
		t.Helper()
		wish(t, object)
		first := object.Annotations[retryAnnotation]
		if slices.Contains(asked, first) {
			t.Errorf("%s the wish asks for nothing: %q", when, first)
		}
		asked = append(asked, first)
		eventually(t, func(g gomega.Gomega) {
			g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
			g.Expect(retryOf(object).LastHandledRequest).To(gomega.Equal(first))
		})
		wish(t, object)
		if again := object.Annotations[retryAnnotation]; again != first {
			t.Errorf("%s the same wish asks again: %q, then %q", when, first, again)
		}
	}
	asks("when it is ready")
	for outage := range 2 {
		// Kubernetes tells times to the second.
		since := ready(t, object).LastTransitionTime
		eventually(t, func(g gomega.Gomega) { g.Expect(time.Since(since.Time)).To(gomega.BeNumerically(">", time.Second)) })
		theStandIn.behave("vcluster-"+id, behaviour{hang: true})
		merge(t, get(t, deploymentOf(id)), fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"example.com/roll":"%d"}}}}}`, outage))
		says(t, object, "Ready False Degraded", "waiting for the API server of the control plane")
		asks(fmt.Sprintf("in outage %d", outage))
		since = ready(t, object).LastTransitionTime
		eventually(t, func(g gomega.Gomega) { g.Expect(time.Since(since.Time)).To(gomega.BeNumerically(">", time.Second)) })
		theStandIn.behave("vcluster-"+id, behaviour{})
		says(t, object, "Ready True Provisioned", "")
	}
}

// ready is the condition as it was last seen.
func ready(t *testing.T, object *v1alpha1.Tenant) *metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		t.Fatal("there is no condition Ready")
	}
	return c
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
