// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Scope is what a caller may see. Its zero value is nothing.
type Scope struct {
	tenant string
	all    bool
}

// Tenant whose objects may be seen, and no others; empty when there is none, or All.
func (s Scope) Tenant() string { return s.tenant }

// All tells that the objects of all tenants may be seen.
func (s Scope) All() bool { return s.all }

// errNothing is what callers are told who may see nothing. It does not say why: whether a tenant exists is nobody's business.
var errNothing = errors.New("you are a member of no tenant: sign in as one, or ask an administrator of the platform to make you one")

// ErrUnknown says that it could not be found out what a caller may see. Callers are told no more of it: the rest is about the host cluster.
var ErrUnknown = errors.New("what you may see cannot be found out at the moment: try again")

func unknown(err error) error { return fmt.Errorf("%w: %w", ErrUnknown, err) }

// Tenants gives the Tenant of a name, as it stands now or a moment ago.
type Tenants interface {
	Get(name string) (*v1alpha1.Tenant, error)
}

// Resolver finds out what a caller may see.
type Resolver struct {
	// Tenants by name.
	Tenants Tenants
	// NamespaceUID gives the UID of a namespace as it is now.
	NamespaceUID func(ctx context.Context, name string) (string, error)
	// Authorizer says who may list all CloudSpaces and all Tenants of the group tenancy.kubeopera.io: they see all here too.
	Authorizer authorizer.Authorizer

	watches watches
}

// Resolve gives what a caller may see. The error, when that is nothing, says so without telling what there is.
func (r *Resolver) Resolve(ctx context.Context, caller user.Info) (Scope, error) {
	if caller == nil || caller.GetName() == "" || caller.GetName() == user.Anonymous {
		return Scope{}, errNothing
	}
	id, err := TenantOf(caller)
	if err != nil {
		return Scope{}, fmt.Errorf("this identity belongs to nobody: %w", err)
	}
	if id == "" {
		return r.resolveAll(ctx, caller)
	}
	return r.resolveTenant(ctx, caller, id)
}

func (r *Resolver) resolveTenant(ctx context.Context, caller user.Info, id string) (Scope, error) {
	tenant, err := r.Tenants.Get(id)
	if apierrors.IsNotFound(err) {
		return Scope{}, errNothing
	}
	if err != nil {
		return Scope{}, unknown(err)
	}
	if !isMember(tenant, caller) {
		return Scope{}, errNothing
	}
	if err := r.checkHome(ctx, tenant, caller); err != nil {
		return Scope{}, err
	}
	return Scope{tenant: id}, nil
}

// checkHome compares the namespace of a ServiceAccount with the one that was made for the Tenant: the name alone could be that of an
// earlier one.
func (r *Resolver) checkHome(ctx context.Context, tenant *v1alpha1.Tenant, caller user.Info) error {
	namespace, _, err := serviceaccount.SplitUsername(caller.GetName())
	if err != nil {
		return nil //nolint:nilerr // not a ServiceAccount: it lives nowhere
	}
	uid, err := r.NamespaceUID(ctx, namespace)
	if err != nil && !apierrors.IsNotFound(err) {
		return unknown(err)
	}
	if uid == "" || uid != tenant.Status.NamespaceUID {
		return errNothing
	}
	return nil
}

func (r *Resolver) resolveAll(ctx context.Context, caller user.Info) (Scope, error) {
	for _, resource := range []string{"cloudspaces", "tenants"} {
		decision, _, err := r.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
			User: caller, Verb: "list", APIGroup: v1alpha1.SchemeGroupVersion.Group, APIVersion: v1alpha1.SchemeGroupVersion.Version,
			Resource: resource, ResourceRequest: true,
		})
		if err != nil {
			return Scope{}, unknown(err)
		}
		if decision != authorizer.DecisionAllow {
			return Scope{}, errNothing
		}
	}
	return Scope{all: true}, nil
}

// isMember tells whether a Tenant's spec names the caller, or a group of the caller's.
func isMember(tenant *v1alpha1.Tenant, caller user.Info) bool {
	for i := range tenant.Spec.Members {
		if is(&tenant.Spec.Members[i], caller) {
			return true
		}
	}
	return false
}

func is(member *v1alpha1.Member, caller user.Info) bool {
	switch member.Kind {
	case v1alpha1.MemberUser:
		return member.Name == caller.GetName()
	case v1alpha1.MemberGroup:
		return slices.Contains(caller.GetGroups(), member.Name)
	case v1alpha1.MemberServiceAccount:
		return serviceaccount.MatchesUsername(member.Namespace, member.Name, caller.GetName())
	default:
		return false
	}
}
