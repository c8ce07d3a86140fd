// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/users"
)

// identity is what a token says of somebody.
type identity struct {
	subject string
	// tenant is empty for an administrator, and for nobody else.
	tenant string
}

// refusal is why somebody gets no token. It is written for them.
type refusal string

func (r refusal) Error() string { return string(r) }

// identify decides what the token of a user says: nothing of a tenant for an administrator, one tenant for everybody else. Tenants are
// those that they are a member of; chosen is the one they ask for, or empty.
func identify(name string, user users.User, tenants []string, chosen string) (identity, error) {
	member := slices.Contains(tenants, chosen)
	switch {
	case user.SuperAdmin && chosen != "":
		return identity{}, refusal("an administrator is in no tenant: sign in without one")
	case user.SuperAdmin:
		return identity{subject: name}, nil
	case len(tenants) == 0:
		return identity{}, refusal("you are no member of a tenant: an administrator, or an owner of yours, has to add kubeopera:" + name + " to its members")
	case chosen == "" && len(tenants) == 1:
		return identity{subject: name, tenant: tenants[0]}, nil
	case chosen == "":
		return identity{}, refusal("you are a member of several tenants, choose one: " + strings.Join(tenants, ", "))
	case !member:
		return identity{}, refusal("you are no member of that tenant; yours: " + strings.Join(tenants, ", "))
	default:
		return identity{subject: name, tenant: chosen}, nil
	}
}

// page is how many Tenants are read at a time.
const page = 500

// tenantsOf finds the tenants that a user is a member of by their own name. The one they chose is enough if it is among them.
func tenantsOf(ctx context.Context, live client.Reader, name, chosen string) ([]string, error) {
	if member, err := isMember(ctx, live, name, chosen); err != nil || member {
		return []string{chosen}, err
	}
	var found []string
	list := &v1alpha1.TenantList{}
	for {
		if err := live.List(ctx, list, client.Limit(page), client.Continue(list.Continue)); err != nil {
			return nil, fmt.Errorf("reading Tenants: %w", err)
		}
		for i := range list.Items {
			if hasMember(&list.Items[i], name) {
				found = append(found, list.Items[i].Name)
			}
		}
		if list.Continue == "" {
			slices.Sort(found)
			return found, nil
		}
	}
}

// isMember looks at one tenant, whose id may be anything.
func isMember(ctx context.Context, live client.Reader, name, id string) (bool, error) {
	if len(validation.IsDNS1123Label(id)) > 0 {
		return false, nil
	}
	var tenant v1alpha1.Tenant
	if err := live.Get(ctx, client.ObjectKey{Name: id}, &tenant); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return hasMember(&tenant, name), nil
}

func hasMember(tenant *v1alpha1.Tenant, name string) bool {
	return slices.ContainsFunc(tenant.Spec.Members, func(m v1alpha1.Member) bool {
		return m.Kind == v1alpha1.MemberUser && m.Name == "kubeopera:"+name
	})
}
