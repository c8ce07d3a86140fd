// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func TestMembersAreBoundToTheirRole(t *testing.T) {
	members := []v1alpha1.Member{
		{Kind: "User", Name: "kubeopera:alice", Role: "Owner"},
		{Kind: "Group", Name: "kubeopera:tenant:alice-default:devs", Role: "Editor"},
		{Kind: "ServiceAccount", Name: "gitops", Namespace: "tenant-alice-default", Role: "Editor"},
	}
	user := rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "kubeopera:alice"}
	group := rbacv1.Subject{APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "kubeopera:tenant:alice-default:devs"}
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: "gitops", Namespace: "tenant-alice-default"}
	tests := map[string]struct {
		role     v1alpha1.MemberRole
		wantName string
		want     []rbacv1.Subject
	}{
		"the owner":                           {role: "Owner", wantName: "cloudspace-owner", want: []rbacv1.Subject{user}},
		"editors of each kind":                {role: "Editor", wantName: "cloudspace-editor", want: []rbacv1.Subject{group, account}},
		"nobody: the binding has no subjects": {role: "Viewer", wantName: "cloudspace-viewer"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := desiredAccess(testScope(testTenant(func(o *v1alpha1.Tenant) { o.Spec.Members = members })), tt.role)
			want := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: tt.wantName, Namespace: "tenant-alice-default"},
				RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: tt.wantName},
				Subjects:   tt.want,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("binding (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryRoleHasAClusterRole(t *testing.T) {
	for _, role := range []v1alpha1.MemberRole{v1alpha1.MemberOwner, v1alpha1.MemberEditor, v1alpha1.MemberViewer} {
		if roleNames[role] == "" {
			t.Errorf("there is no ClusterRole for %s", role)
		}
	}
}

// A template sets the default CloudSpace when it is new or changes; between, what was changed on the CloudSpace itself stays.
func TestTheTemplateOfTheDefaultCloudSpace(t *testing.T) {
	versionOf := func(template v1alpha1.CloudSpaceSpec) string {
		version, err := digestOf(template)
		if err != nil {
			t.Fatal(err)
		}
		return version
	}
	standing := func(cpu, setFrom string) *v1alpha1.CloudSpace {
		c := following("Active")
		c.Spec = spec(cpu)
		c.Annotations = map[string]string{"tenancy.kubeopera.io/template": versionOf(spec(setFrom))}
		return c
	}
	tests := map[string]struct {
		template string
		stands   *v1alpha1.CloudSpace
		wantCPU  string
	}{
		"no CloudSpace yet: it is like the template": {template: "2", wantCPU: "2"},
		"nothing changed: it stays":                  {template: "2", stands: standing("2", "2"), wantCPU: "2"},
		"an edit of the CloudSpace is kept":          {template: "2", stands: standing("4", "2"), wantCPU: "4"},
		"a change of the template is carried over":   {template: "3", stands: standing("2", "2"), wantCPU: "3"},
		"a change of the template wins over an edit": {template: "3", stands: standing("4", "2"), wantCPU: "3"},
		"a template set back is a change too":        {template: "2", stands: standing("3", "3"), wantCPU: "2"},
		"a CloudSpace without a mark is set from the template": {template: "2", stands: func() *v1alpha1.CloudSpace {
			c := standing("4", "2")
			c.Annotations = nil
			return c
		}(), wantCPU: "2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := testScope(testTenant(func(o *v1alpha1.Tenant) { o.Spec.DefaultCloudSpace.Template.Spec = spec(tt.template) }))
			s.observed.cloudSpace = tt.stands
			got, err := desiredCloudSpace(s)
			if err != nil {
				t.Fatal(err)
			}
			if got.Name != "default" || got.Namespace != "tenant-alice-default" {
				t.Errorf("it is %s/%s, want tenant-alice-default/default", got.Namespace, got.Name)
			}
			if got.Spec.Resources.CPU.String() != tt.wantCPU {
				t.Errorf("cpu is %s, want %s", got.Spec.Resources.CPU.String(), tt.wantCPU)
			}
			if got.Annotations["tenancy.kubeopera.io/template"] != versionOf(spec(tt.template)) {
				t.Errorf("annotations are %v, want the mark of the template", got.Annotations)
			}
		})
	}
}

func TestTheSameTemplateHasTheSameMark(t *testing.T) {
	first, err := digestOf(spec("2"))
	if err != nil {
		t.Fatal(err)
	}
	for _, same := range []v1alpha1.CloudSpaceSpec{spec("2"), spec("2000m")} {
		if again, err := digestOf(same); err != nil || again != first {
			t.Errorf("got %s, %v, want %s", again, err, first)
		}
	}
	if other, err := digestOf(spec("2001m")); err != nil || other == first {
		t.Errorf("another template has the mark %s, %v", other, err)
	}
}

func TestANamespaceMadeBeforehandIsTakenOnlyWithTheLabel(t *testing.T) {
	tests := map[string]struct {
		namespace *corev1.Namespace
		want      bool
	}{
		"none":                        {},
		"with the tenant's label":     {namespace: labelled("alice-default", ""), want: true},
		"with another tenant's label": {namespace: labelled("bob-default", "")},
		"without a label":             {namespace: &corev1.Namespace{}},
		"that belongs to a Tenant":    {namespace: labelled("alice-default", "uid-of-an-earlier-alice")},
		"that is being deleted": {namespace: func() *corev1.Namespace {
			n := labelled("alice-default", "")
			n.DeletionTimestamp = &metav1.Time{Time: noon}
			return n
		}()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := madeBeforehand(tt.namespace, "alice-default"); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func labelled(tenant, owner string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-alice-default", Labels: map[string]string{"tenancy.kubeopera.io/tenant": tenant}}}
	if owner != "" {
		n.Labels["tenancy.kubeopera.io/owner-uid"] = owner
	}
	return n
}

func TestTheKubeconfigIsACopyOfTheDefaultCloudSpaces(t *testing.T) {
	s := testScope(testTenant())
	s.observed.cloudSpace = &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{UID: "uid-cloudspace"}}
	s.observed.source = &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}},
		Data:       map[string][]byte{"config": []byte("text"), "value": []byte("text")},
	}
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: "tenant-alice-default-kubeconfig", Namespace: "kubeopera-system", Annotations: map[string]string{"tenancy.kubeopera.io/opens": "uid-cloudspace"},
		},
		Type: "Opaque",
		Data: map[string][]byte{"config": []byte("text"), "value": []byte("text")},
	}
	if diff := cmp.Diff(want, desiredKubeconfig(s)); diff != "" {
		t.Errorf("Secret (-want +got):\n%s", diff)
	}
}
