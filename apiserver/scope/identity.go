// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/tantilium/cloud-runner/internal/names"
)

// What config/authn makes of a token's claims.
const (
	extraUserType     = "kubeopera.io/user-type"
	extraTenantID     = "kubeopera.io/tenant-id"
	extraTokenExpires = "kubeopera.io/token-expires" //nolint:gosec // the name of a fact about a token

	groupSuperAdmins  = "kubeopera:super-admins"
	groupTenantPrefix = "kubeopera:tenant:"

	typeCustomer   = "customer"
	typeSuperAdmin = "super_admin"
)

// errTwoValues says that what must be one value is none, or several.
var errTwoValues = errors.New("must have one value")

// TenantOf gives the tenant that an identity says it belongs to, or none. Claim, groups and the namespace of a ServiceAccount must
// agree where there are several of them: an identity that is not quite right belongs to nobody, and is an error.
func TenantOf(caller user.Info) (id string, err error) {
	claimed, err := claimedTenant(caller)
	if err != nil {
		return "", err
	}
	grouped, err := groupedTenant(caller.GetGroups())
	if err != nil {
		return "", err
	}
	homed, err := homeTenant(caller)
	if err != nil {
		return "", err
	}
	id, err = agreed(claimed, grouped, homed)
	if err != nil {
		return "", err
	}
	return id, checkType(caller, id)
}

// claimedTenant is the tenant of the claim tenant_id.
func claimedTenant(caller user.Info) (string, error) {
	id, found, err := single(caller, extraTenantID)
	if err != nil || !found {
		return "", err
	}
	if !names.IsTenantID(id) {
		return "", fmt.Errorf("%s is not a tenant id", extraTenantID)
	}
	return id, nil
}

// groupedTenant is the tenant of the group kubeopera:tenant:<id>. Groups within a tenant, kubeopera:tenant:<id>:<group>, must be of the
// same one.
func groupedTenant(groups []string) (string, error) {
	tenant, whole := "", false
	for _, group := range groups {
		rest, found := strings.CutPrefix(group, groupTenantPrefix)
		if !found {
			continue
		}
		id, _, within := strings.Cut(rest, ":")
		if !names.IsTenantID(id) || (tenant != "" && tenant != id) {
			return "", errors.New("the groups are of no tenant, or of several")
		}
		tenant, whole = id, whole || !within
	}
	if tenant != "" && !whole {
		return "", errors.New("a group within a tenant needs the group of the tenant")
	}
	return tenant, nil
}

// homeTenant is the tenant in whose namespace a ServiceAccount lives.
func homeTenant(caller user.Info) (string, error) {
	namespace, _, err := serviceaccount.SplitUsername(caller.GetName())
	if err != nil {
		// Who is no ServiceAccount cannot have the group that all of a namespace have.
		return "", noGroupOf(caller, "")
	}
	if err := noGroupOf(caller, namespace); err != nil {
		return "", err
	}
	id, found := names.TenantID(namespace)
	if !found {
		return "", nil
	}
	if !slices.Contains(caller.GetGroups(), serviceaccount.MakeNamespaceGroupName(namespace)) {
		return "", errors.New("a ServiceAccount without the group of its namespace")
	}
	return id, nil
}

// noGroupOf refuses the group of the ServiceAccounts of any other namespace.
func noGroupOf(caller user.Info, namespace string) error {
	for _, group := range caller.GetGroups() {
		of, found := strings.CutPrefix(group, serviceaccount.ServiceAccountGroupPrefix)
		if found && of != namespace {
			return errors.New("the group of another namespace's ServiceAccounts")
		}
	}
	return nil
}

func agreed(ids ...string) (string, error) {
	tenant := ""
	for _, id := range ids {
		if id != "" && tenant != "" && id != tenant {
			return "", errors.New("claim, groups and namespace are of different tenants")
		}
		tenant = cmp.Or(tenant, id)
	}
	return tenant, nil
}

// checkType compares the claim user_type with whether there is a tenant.
func checkType(caller user.Info, tenant string) error {
	kind, found, err := single(caller, extraUserType)
	switch {
	case err != nil:
		return err
	case found && kind != typeCustomer && kind != typeSuperAdmin:
		return fmt.Errorf("%s is neither %s nor %s", extraUserType, typeCustomer, typeSuperAdmin)
	case kind == typeCustomer && tenant == "":
		return errors.New("a customer without a tenant")
	case tenant != "" && (kind == typeSuperAdmin || slices.Contains(caller.GetGroups(), groupSuperAdmins)):
		return errors.New("an administrator with a tenant")
	default:
		return nil
	}
}

func single(caller user.Info, key string) (value string, found bool, err error) {
	values, found := caller.GetExtra()[key]
	if !found {
		return "", false, nil
	}
	if len(values) != 1 || values[0] == "" {
		return "", false, fmt.Errorf("%s %w", key, errTwoValues)
	}
	return values[0], true, nil
}
