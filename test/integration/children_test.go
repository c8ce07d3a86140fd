// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// childrenOf are all objects that the operator has made for a tenant. What Flux installs carries its labels too, and the revision of its
// release; how that comes back is another test's.
func childrenOf(t *testing.T, id string) []client.Object {
	t.Helper()
	return slices.DeleteFunc(objectsOf(t, id), func(object client.Object) bool {
		_, isTenant := object.(*v1alpha1.Tenant)
		_, installed := object.GetAnnotations()["tenancy.kubeopera.io/revision"]
		return isTenant || installed || object.GetLabels()[v1alpha1.LabelOwnerUID] == ""
	})
}

// Each object that the operator makes comes back when it is deleted, and keeps its labels. One that has lost the UID of its owner
// counts as somebody else's: it is refused, and left as it is, until the label is put back. But for the tenant's namespace, which may be
// made beforehand: its tenant label is reserved to administrators. The list is what really was made.
func TestEveryChildIsKeptAsItIs(t *testing.T) {
	t.Parallel()
	const id = "children"
	object := reach(t, create(t, tenant(id)), "Ready")
	children := childrenOf(t, id)
	if len(children) < 12 {
		t.Fatalf("only %d objects were made: %v", len(children), leftovers(t, id))
	}
	for _, child := range children {
		what := fmt.Sprintf("%s %s", kindOf(child), child.GetName())
		want := essence(t, child)
		comesBack := func(t *testing.T, same bool) {
			t.Helper()
			eventually(t, func(g gomega.Gomega) {
				after := fresh(child)
				g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(child), after)).To(gomega.Succeed())
				g.Expect(cmp.Diff(want, essence(t, after))).To(gomega.BeEmpty(), "-want +got")
				if same {
					g.Expect(after.GetUID()).To(gomega.Equal(child.GetUID()))
				} else {
					g.Expect(after.GetUID()).NotTo(gomega.Equal(child.GetUID()))
				}
			})
			says(t, object, "Ready True Provisioned", "")
		}
		for _, label := range []string{v1alpha1.LabelTenant, v1alpha1.LabelCloudSpace} {
			if child.GetLabels()[label] != "" {
				t.Run(what+" without "+label, func(t *testing.T) {
					merge(t, fresh(child), without(label))
					comesBack(t, true)
				})
			}
		}
		if child.GetName() == "tenant-"+id {
			t.Run(what+" without its owner is one made beforehand", func(t *testing.T) {
				merge(t, fresh(child), without(v1alpha1.LabelOwnerUID))
				comesBack(t, true)
			})
		} else if !followed(child) && !handedOver(child) {
			t.Run(what+" without its owner", func(t *testing.T) {
				merge(t, fresh(child), without(v1alpha1.LabelOwnerUID))
				refused(t, id, child.GetName())
				left := essence(t, get(t, fresh(child)))
				left["labels"].(map[string]string)[v1alpha1.LabelOwnerUID] = child.GetLabels()[v1alpha1.LabelOwnerUID]
				if diff := cmp.Diff(want, left); diff != "" {
					t.Errorf("it was altered:\n%s", diff)
				}
				merge(t, fresh(child), fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1alpha1.LabelOwnerUID, child.GetLabels()[v1alpha1.LabelOwnerUID]))
				comesBack(t, true)
			})
		}
		if _, ok := child.(*corev1.Namespace); !ok && !followed(child) {
			t.Run(what+" deleted", func(t *testing.T) {
				if err := api.Delete(t.Context(), fresh(child)); err != nil {
					t.Fatal(err)
				}
				comesBack(t, false)
			})
		}
	}
}

// followed tells whether an object is followed whoever made it, and is more than an object: its deletion is another test's.
func followed(child client.Object) bool {
	_, ok := child.(*v1alpha1.CloudSpace)
	return ok
}

// handedOver tells whether an object that has lost the UID of its owner is an administrator's from then on.
func handedOver(child client.Object) bool {
	_, ok := child.(*v1alpha1.TenantQuota)
	return ok
}

func TestATenantQuotaWithoutItsOwnerIsAnAdministrators(t *testing.T) {
	t.Parallel()
	const id = "handed-over"
	object := reach(t, create(t, tenant(id)), "Ready")
	quota := tenantQuota(id, nil)
	merge(t, quota, without(v1alpha1.LabelOwnerUID))
	merge(t, quota, `{"spec":{"hard":{"pods":"1000"}}}`)
	reservations(t, id, "default 2")
	says(t, object, "QuotaConfigured True Succeeded", "")
	if left := get(t, quota); left.Labels[v1alpha1.LabelOwnerUID] != "" || len(left.Spec.Hard) != 1 {
		t.Errorf("it was taken back: %v, %v", left.Labels, left.Spec.Hard)
	}
	remove(t, object)
	remove(t, get(t, quota))
}

func fresh(object client.Object) client.Object { return object.DeepCopyObject().(client.Object) }

func without(label string) string { return fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label) }

// refused waits until the Tenant or its CloudSpace says that an object is not ours.
func refused(t *testing.T, id, name string) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		var told []string
		for _, owner := range []client.Object{tenant(id), cloudSpace(id, "default")} {
			for _, c := range conditionsOf(get(t, owner)) {
				if c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonNotOurs {
					told = append(told, c.Message)
				}
			}
		}
		g.Expect(strings.Join(told, "; ")).To(gomega.ContainSubstring(" " + name + " exists and was not made for this object"))
	})
}

// A finalizer of ours that is taken off a living object is put back, and what was made for it is taken down with it later.
func TestAFinalizerThatIsTakenOffComesBack(t *testing.T) {
	t.Parallel()
	const id = "finalizers"
	object := reach(t, create(t, tenant(id)), "Ready")
	for _, owner := range []client.Object{object, cloudSpace(id, "default")} {
		had := get(t, owner).GetFinalizers()
		merge(t, owner, `{"metadata":{"finalizers":null}}`)
		eventually(t, func(g gomega.Gomega) { g.Expect(get(t, owner).GetFinalizers()).To(gomega.Equal(had), "%T", owner) })
	}
	remove(t, object)
	if found := leftovers(t, id); len(found) > 0 {
		t.Errorf("left are %s", strings.Join(found, ", "))
	}
}
