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

// Members change what a CloudSpace asks for, and nothing that the platform relies on: an Editor, who may not delete, could otherwise
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
	reach(t, create(t, tenant("members-b")), "Ready")
	tests := map[string]struct {
		user, tenant, patch string
		// want is in the error; empty means that it is allowed.
		want string
	}{
		"an Editor changes the spec":                {user: "editor", patch: `{"spec":{"displayName":"New"}}`},
		"an Owner changes the spec":                 {user: "owner", patch: `{"spec":{"displayName":"Newer"}}`},
		"an Editor labels it for themselves":        {user: "editor", patch: `{"metadata":{"labels":{"example.com/team":"a"}}}`},
		"an Editor annotates it for themselves":     {user: "editor", patch: `{"metadata":{"annotations":{"example.com/note":"a"}}}`},
		"an Editor asks for a retry":                {user: "editor", patch: `{"metadata":{"annotations":{"tenancy.kubeopera.io/retry-requested":"1"}}}`},
		"a Viewer changes nothing":                  {user: "viewer", patch: `{"spec":{"displayName":"No"}}`, want: "forbidden"},
		"nobody changes another tenant's":           {user: "owner", tenant: "members-b", patch: `{"spec":{"displayName":"No"}}`, want: "forbidden"},
		"nobody sets an owner reference":            {user: "editor", patch: `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`, want: "ownerReferences of a CloudSpace cannot be changed"},
		"nobody removes the finalizer":              {user: "owner", patch: `{"metadata":{"finalizers":null}}`, want: "finalizers of a CloudSpace cannot be changed"},
		"nobody adds a finalizer":                   {user: "owner", patch: `{"metadata":{"finalizers":["tenancy.kubeopera.io/cloudspace","example.com/hold"]}}`, want: "finalizers of a CloudSpace cannot be changed"},
		"nobody changes a label of the platform":    {user: "owner", patch: `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":"a"}}}`, want: "labels of the platform"},
		"nobody removes a label of the platform":    {user: "owner", patch: `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":null}}}`, want: "labels of the platform"},
		"nobody changes the record of the template": {user: "owner", patch: `{"metadata":{"annotations":{"tenancy.kubeopera.io/template":"a"}}}`, want: "annotations of the platform"},
		"nobody removes the record of the template": {user: "owner", patch: `{"metadata":{"annotations":{"tenancy.kubeopera.io/template":null}}}`, want: "annotations of the platform"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			id := "members"
			if tt.tenant != "" {
				id = tt.tenant
			}
			err := identity(t, "kubeopera:"+tt.user).Patch(t.Context(), cloudSpace(id, "default"), client.RawPatch(types.MergePatchType, []byte(tt.patch)))
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && err == nil:
				t.Error("allowed")
			case tt.want == "forbidden" && !apierrors.IsForbidden(err), tt.want != "" && !strings.Contains(err.Error(), tt.want):
				t.Errorf("refused with %v, want %q", err, tt.want)
			}
		})
	}
	t.Run("an Owner makes one, with nothing that is not theirs to say", func(t *testing.T) {
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
			if err := identity(t, "kubeopera:owner").Create(t.Context(), made); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		elsewhere := cloudSpace("members-b", "evil")
		if err := identity(t, "kubeopera:owner").Create(t.Context(), elsewhere); !apierrors.IsForbidden(err) {
			t.Errorf("in another tenant's namespace: got %v", err)
		}
		said := cloudSpace("members", "said")
		said.Status = v1alpha1.CloudSpaceStatus{Phase: "Active", HostNamespace: "kube-system"}
		if err := identity(t, "kubeopera:owner").Create(t.Context(), said); err != nil {
			t.Fatal(err)
		}
		if said.Status.Phase == "Active" || said.Status.HostNamespace == "kube-system" {
			t.Errorf("a status was taken: %+v", said.Status)
		}
		remove(t, said)
	})
	t.Run("an Owner makes one and deletes it", func(t *testing.T) {
		owner := identity(t, "kubeopera:owner")
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
