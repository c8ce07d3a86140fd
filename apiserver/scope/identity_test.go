// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
)

func TestTenantOf(t *testing.T) {
	t.Parallel()
	const (
		tenantID, userType = "kubeopera.io/tenant-id", "kubeopera.io/user-type"
	)
	long := strings.Repeat("a", 25)
	tests := map[string]struct {
		name    string
		groups  []string
		extra   map[string][]string
		want    string
		refused bool
	}{
		"a customer": {
			groups: []string{"kubeopera:customers", "kubeopera:tenant:a"}, extra: map[string][]string{tenantID: {"a"}, userType: {"customer"}}, want: "a",
		},
		"by the claim alone":                    {extra: map[string][]string{tenantID: {"a"}}, want: "a"},
		"by the group alone":                    {groups: []string{"kubeopera:tenant:a"}, want: "a"},
		"with groups within the tenant":         {groups: []string{"kubeopera:tenant:a", "kubeopera:tenant:a:devs"}, want: "a"},
		"nobody's":                              {groups: []string{"system:authenticated"}},
		"a group of the same beginning":         {groups: []string{"kubeopera:tenants", "xkubeopera:tenant:a"}},
		"a group within a tenant alone":         {groups: []string{"kubeopera:tenant:a:devs"}, refused: true},
		"groups of two tenants":                 {groups: []string{"kubeopera:tenant:a", "kubeopera:tenant:b"}, refused: true},
		"a group within another tenant":         {groups: []string{"kubeopera:tenant:a", "kubeopera:tenant:b:devs"}, refused: true},
		"a group of no tenant":                  {groups: []string{"kubeopera:tenant:"}, refused: true},
		"a group of what can be no tenant":      {groups: []string{"kubeopera:tenant:A"}, refused: true},
		"an empty claim":                        {extra: map[string][]string{tenantID: {""}}, refused: true},
		"a claim without a value":               {extra: map[string][]string{tenantID: {}}, refused: true},
		"two claims":                            {extra: map[string][]string{tenantID: {"a", "b"}}, refused: true},
		"the same claim twice":                  {extra: map[string][]string{tenantID: {"a", "a"}}, refused: true},
		"a claim with a separator":              {extra: map[string][]string{tenantID: {"a--b"}}, refused: true},
		"a claim that is too long":              {extra: map[string][]string{tenantID: {long}}, refused: true},
		"a claim with a line break":             {extra: map[string][]string{tenantID: {"a\n"}}, refused: true},
		"claim and group of different tenants":  {groups: []string{"kubeopera:tenant:b"}, extra: map[string][]string{tenantID: {"a"}}, refused: true},
		"a customer without a tenant":           {extra: map[string][]string{userType: {"customer"}}, refused: true},
		"a type that there is not":              {extra: map[string][]string{userType: {"root"}, tenantID: {"a"}}, refused: true},
		"two types":                             {extra: map[string][]string{userType: {"customer", "super_admin"}, tenantID: {"a"}}, refused: true},
		"an administrator":                      {groups: []string{"kubeopera:super-admins"}, extra: map[string][]string{userType: {"super_admin"}}},
		"an administrator with a tenant":        {extra: map[string][]string{userType: {"super_admin"}, tenantID: {"a"}}, refused: true},
		"an administrator's group and a tenant": {groups: []string{"kubeopera:super-admins", "kubeopera:tenant:a"}, refused: true},
		"a ServiceAccount of a tenant": {
			name: "system:serviceaccount:tenant-a:gitops", groups: []string{"system:serviceaccounts", "system:serviceaccounts:tenant-a"}, want: "a",
		},
		"a ServiceAccount elsewhere": {
			name: "system:serviceaccount:default:gitops", groups: []string{"system:serviceaccounts", "system:serviceaccounts:default"},
		},
		"a ServiceAccount without its group": {name: "system:serviceaccount:tenant-a:gitops", refused: true},
		"a ServiceAccount with another's group": {
			name: "system:serviceaccount:tenant-a:gitops", groups: []string{"system:serviceaccounts:tenant-a", "system:serviceaccounts:tenant-b"}, refused: true,
		},
		"a ServiceAccount that claims another tenant": {
			name: "system:serviceaccount:tenant-a:gitops", groups: []string{"system:serviceaccounts:tenant-a"}, extra: map[string][]string{tenantID: {"b"}}, refused: true,
		},
		"a user with the group of a ServiceAccount": {groups: []string{"system:serviceaccounts:tenant-a"}, refused: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller := &user.DefaultInfo{Name: tt.name, Groups: tt.groups, Extra: tt.extra}
			if caller.Name == "" {
				caller.Name = "kubeopera:alice"
			}
			got, err := TenantOf(caller)
			if (err != nil) != tt.refused || got != tt.want && err == nil {
				t.Errorf("it is %q (%v), not %q", got, err, tt.want)
			}
		})
	}
}
