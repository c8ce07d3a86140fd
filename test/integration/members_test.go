// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// viewUser passes on what members do in the view.
const viewUser = "system:serviceaccount:kubeopera-core:kubeopera-api"

// Members, through the view, change what a CloudSpace asks for, and nothing that the platform relies on: an Editor, who may not delete, could otherwise
// delete with an owner reference, and an Owner could leave a host namespace behind by removing a finalizer.
func TestWhatMembersMayChange(t *testing.T) {
	t.Parallel()
	reach(t, create(t, tenant("members", func(o *v1alpha1.Tenant) {
		o.Spec.Members = []v1alpha1.Member{
			{Kind: "User", Name: "kubeopera:owner", Role: "Owner"},
			{Kind: "User", Name: "kubeopera:editor", Role: "Editor"},
			{Kind: "User", Name: "kubeopera:viewer", Role: "Viewer"},
		}
	})), "Ready")
	tests := map[string]struct {
		patch string
		// want is in the error; empty means that it is allowed.
		want string
	}{
		"they change the spec":                      {patch: `{"spec":{"displayName":"New"}}`},
		"they change the spec again":                {patch: `{"spec":{"displayName":"Newer"}}`},
		"they label it for themselves":              {patch: `{"metadata":{"labels":{"example.com/team":"a"}}}`},
		"they annotate it for themselves":           {patch: `{"metadata":{"annotations":{"example.com/note":"a"}}}`},
		"they ask for a retry":                      {patch: `{"metadata":{"annotations":{"tenancy.kubeopera.io/retry-requested":"1"}}}`},
		"nobody sets an owner reference":            {patch: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`, want: "ownerReferences of a CloudSpace cannot be changed"},
		"nobody removes the finalizer":              {patch: `{"metadata":{"finalizers":null}}`, want: "finalizers of a CloudSpace cannot be changed"},
		"nobody adds a finalizer":                   {patch: `{"metadata":{"finalizers":["tenancy.kubeopera.io/cloudspace","example.com/hold"]}}`, want: "finalizers of a CloudSpace cannot be changed"},
		"nobody changes a label of the platform":    {patch: `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":"a"}}}`, want: "labels of the platform"},
		"nobody removes a label of the platform":    {patch: `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":null}}}`, want: "labels of the platform"},
		"nobody changes the record of the template": {patch: `{"metadata":{"annotations":{"tenancy.kubeopera.io/template":"a"}}}`, want: "annotations of the platform"},
		"nobody removes the record of the template": {patch: `{"metadata":{"annotations":{"tenancy.kubeopera.io/template":null}}}`, want: "annotations of the platform"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := identity(t, viewUser).Patch(t.Context(), cloudSpace("members", "default"), client.RawPatch(types.MergePatchType, []byte(tt.patch)))
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && err == nil:
				t.Error("allowed")
			case tt.want != "" && !strings.Contains(err.Error(), tt.want):
				t.Errorf("refused with %v, want %q", err, tt.want)
			}
		})
	}
	for _, user := range []string{"kubeopera:owner", "kubeopera:editor", "kubeopera:viewer"} {
		t.Run(user+" reads and writes nothing that is stored", func(t *testing.T) {
			stored := cloudSpace("members", "default")
			for _, err := range []error{
				identity(t, user).Get(t.Context(), client.ObjectKeyFromObject(stored), stored),
				identity(t, user).List(t.Context(), &v1alpha1.CloudSpaceList{}, client.InNamespace(stored.Namespace)),
				identity(t, user).Patch(t.Context(), stored, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"displayName":"No"}}`))),
				identity(t, user).Delete(t.Context(), stored),
			} {
				if !apierrors.IsForbidden(err) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
	t.Run("they make one, with nothing that is not theirs to say", func(t *testing.T) {
		for want, alter := range map[string]func(*v1alpha1.CloudSpace){
			"ownerReferences of a CloudSpace cannot be changed": func(c *v1alpha1.CloudSpace) {
				c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
			},
			"finalizers of a CloudSpace cannot be changed": func(c *v1alpha1.CloudSpace) { c.Finalizers = []string{"example.com/hold"} },
			"labels of the platform":                       func(c *v1alpha1.CloudSpace) { c.Labels = map[string]string{v1alpha1.LabelTenant: "members-b"} },
			"annotations of the platform":                  func(c *v1alpha1.CloudSpace) { c.Annotations = map[string]string{"tenancy.kubeopera.io/template": "a"} },
		} {
			made := cloudSpace("members", "evil")
			alter(made)
			if err := identity(t, viewUser).Create(t.Context(), made); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		said := cloudSpace("members", "said")
		said.Status = v1alpha1.CloudSpaceStatus{Phase: "Active", HostNamespace: "kube-system"}
		if err := identity(t, viewUser).Create(t.Context(), said); err != nil {
			t.Fatal(err)
		}
		if said.Status.Phase == "Active" || said.Status.HostNamespace == "kube-system" {
			t.Errorf("a status was taken: %+v", said.Status)
		}
		remove(t, said)
	})
	t.Run("they make one and delete it", func(t *testing.T) {
		owner := identity(t, viewUser)
		made := cloudSpace("members", "extra")
		if err := owner.Create(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		if err := owner.Delete(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		gone(t, made)
	})
}
