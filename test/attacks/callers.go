// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// The two tenants. What is of Own is asked for by its members and, as what is not theirs, by a member of Foreign; and the other way round.
const (
	Own     = "attack-a"
	Foreign = "attack-b"
)

// The CloudSpace of each.
const (
	ownCloudSpace     = "one"
	foreignCloudSpace = "two"
)

// namespaceOf a tenant's CloudSpaces.
func namespaceOf(tenant string) string { return "tenant-" + tenant }

// displayNameOf a tenant is seen nowhere but in what is the tenant's.
func displayNameOf(tenant string) string { return "Of " + tenant }

// Tenants gives those that must be there, with the callers that are members.
func Tenants() []*tenancyv1alpha1.Tenant {
	user := func(name string, role tenancyv1alpha1.MemberRole) tenancyv1alpha1.Member {
		return tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberUser, Name: "kubeopera:" + name, Role: role}
	}
	return []*tenancyv1alpha1.Tenant{
		tenant(Own, user(owner, tenancyv1alpha1.MemberOwner), user(editor, tenancyv1alpha1.MemberEditor), user(viewer, tenancyv1alpha1.MemberViewer),
			tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberServiceAccount, Name: account, Namespace: namespaceOf(Own), Role: tenancyv1alpha1.MemberEditor}),
		tenant(Foreign, user(bob, tenancyv1alpha1.MemberOwner)),
	}
}

func tenant(id string, members ...tenancyv1alpha1.Member) *tenancyv1alpha1.Tenant {
	return &tenancyv1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec:       tenancyv1alpha1.TenantSpec{DisplayName: displayNameOf(id), Members: members},
	}
}

// CloudSpaces gives those that must be there, one of each tenant. None has to run.
func CloudSpaces() []*tenancyv1alpha1.CloudSpace {
	return []*tenancyv1alpha1.CloudSpace{cloudSpace(Own, ownCloudSpace), cloudSpace(Foreign, foreignCloudSpace)}
}

func cloudSpace(tenant, name string) *tenancyv1alpha1.CloudSpace {
	return &tenancyv1alpha1.CloudSpace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespaceOf(tenant)}, Spec: tenancyv1alpha1.CloudSpaceSpec{Suspend: true},
	}
}

// ServiceAccounts gives those that must be there where callers come with tokens: one is a member of its namespace's tenant, the other is of
// the same name, and a member of none.
func ServiceAccounts() []*corev1.ServiceAccount {
	in := func(namespace string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespace}}
	}
	return []*corev1.ServiceAccount{in(namespaceOf(Own)), in(metav1.NamespaceDefault)}
}

// Names of callers.
const (
	owner, editor, viewer = "attack-owner", "attack-editor", "attack-viewer"
	bob                   = "attack-bob"
	account               = "attack-gitops"
)

// Caller is somebody who asks something of the view.
type Caller struct {
	// Identity is who kube-apiserver takes them for.
	Identity rest.ImpersonationConfig
	// Claims are those of a token that says so, or would, beside issuer, audience and time; nil for who has none of the provider's.
	Claims map[string]any
	// ServiceAccount whose token says so; nil for others.
	ServiceAccount *corev1.ServiceAccount
	// Refused tells that kube-apiserver refuses the token, so that with one nobody ever is this caller.
	Refused bool
}

// home is the tenant that sees the caller as its member; empty for none.
func (c Caller) home() string {
	if c.Refused {
		return ""
	}
	for _, tenant := range Tenants() {
		for _, member := range tenant.Spec.Members {
			name := member.Name
			if member.Kind == tenancyv1alpha1.MemberServiceAccount {
				name = serviceaccount.MakeUsername(member.Namespace, member.Name)
			}
			if name == c.Identity.UserName {
				return tenant.Name
			}
		}
	}
	return ""
}

// Callers gives all kinds of callers by what they are.
func Callers() map[string]Caller {
	all := map[string]Caller{
		"owner": customer(owner, Own), "editor": customer(editor, Own), "viewer": customer(viewer, Own), "bob": customer(bob, Foreign),
		"not a member":             customer("attack-left", Own),
		"a ServiceAccount":         serviceAccount(ServiceAccounts()[0]),
		"a ServiceAccount outside": serviceAccount(ServiceAccounts()[1]),
		"super_admin": {
			Identity: rest.ImpersonationConfig{
				UserName: "kubeopera:attack-root", Groups: []string{"kubeopera:super-admins", "system:authenticated"},
				Extra: map[string][]string{"kubeopera.io/user-type": {"super_admin"}},
			},
			Claims: map[string]any{"sub": "attack-root", "user_type": "super_admin"},
		},
		"anonymous": {Identity: rest.ImpersonationConfig{UserName: "system:anonymous", Groups: []string{"system:unauthenticated"}}},
	}
	for who, caller := range refused() {
		caller.Refused = true
		all[who] = caller
	}
	return all
}

// refused gives the callers that a token makes of nobody. All would be the owner, but for what is not right.
func refused() map[string]Caller {
	none := customer(owner, Own)
	none.Identity.Groups, none.Identity.Extra = []string{"kubeopera:customers", "system:authenticated"}, nil
	delete(none.Claims, "tenant_id")
	empty := customer(owner, Own)
	empty.Identity.Extra["kubeopera.io/tenant-id"] = []string{""}
	empty.Claims["tenant_id"] = ""
	two := customer(owner, Own)
	two.Identity.Groups = append(two.Identity.Groups, "kubeopera:tenant:"+Foreign)
	two.Claims["groups"] = []string{"kubeopera:tenant:" + Foreign}
	doubled := customer(owner, Own)
	doubled.Identity.Extra["kubeopera.io/tenant-id"] = []string{Own, Foreign}
	doubled.Claims["tenant_id"] = []string{Own, Foreign}
	disagree := customer(owner, Own)
	disagree.Identity.Extra["kubeopera.io/tenant-id"] = []string{Foreign}
	disagree.Claims["tenant_id"], disagree.Claims["groups"] = Foreign, []string{"kubeopera:tenant:" + Own}
	both := customer(owner, Own)
	both.Identity.Groups = append(both.Identity.Groups, "kubeopera:super-admins")
	both.Claims["user_type"] = "super_admin"
	return map[string]Caller{
		"no tenant": none, "an empty tenant": empty, "two tenants": two, "a doubled tenant": doubled, "claim and group disagree": disagree,
		"an administrator with a tenant": both,
	}
}

// customer is somebody with a token for a tenant.
func customer(name, tenant string) Caller {
	return Caller{
		Identity: rest.ImpersonationConfig{
			UserName: "kubeopera:" + name, Groups: []string{"kubeopera:customers", "kubeopera:tenant:" + tenant, "system:authenticated"},
			Extra: map[string][]string{"kubeopera.io/user-type": {"customer"}, "kubeopera.io/tenant-id": {tenant}},
		},
		Claims: map[string]any{"sub": name, "user_type": "customer", "tenant_id": tenant},
	}
}

func serviceAccount(is *corev1.ServiceAccount) Caller {
	return Caller{
		Identity: rest.ImpersonationConfig{
			UserName: serviceaccount.MakeUsername(is.Namespace, is.Name),
			Groups:   append(serviceaccount.MakeGroupNames(is.Namespace), "system:authenticated"),
		},
		ServiceAccount: is,
	}
}
