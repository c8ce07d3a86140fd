// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"testing"

	"github.com/tantilium/cloud-runner/internal/users"
)

func TestWhatATokenSaysOfSomebody(t *testing.T) {
	customer, administrator := users.User{}, users.User{SuperAdmin: true}
	tests := map[string]struct {
		user    users.User
		tenants []string
		chosen  string
		want    identity
		refused string
	}{
		"a member of one tenant":                  {user: customer, tenants: []string{"a"}, want: identity{"alice", "a"}},
		"a member of one, who says which":         {user: customer, tenants: []string{"a"}, chosen: "a", want: identity{"alice", "a"}},
		"a member of two, who says which":         {user: customer, tenants: []string{"a", "b"}, chosen: "b", want: identity{"alice", "b"}},
		"a member of two, who does not say which": {user: customer, tenants: []string{"a", "b"}, refused: "you are a member of several tenants, choose one: a, b"},
		"a member of another tenant":              {user: customer, tenants: []string{"a"}, chosen: "b", refused: "you are no member of that tenant; yours: a"},
		"a tenant that nearly is theirs":          {user: customer, tenants: []string{"a"}, chosen: "a ", refused: "you are no member of that tenant; yours: a"},
		"a member of none": {
			user: customer, refused: "you are no member of a tenant: an administrator, or an owner of yours, has to add kubeopera:alice to its members",
		},
		"a member of none, who says which": {
			user: customer, chosen: "a", refused: "you are no member of a tenant: an administrator, or an owner of yours, has to add kubeopera:alice to its members",
		},
		"an administrator":                       {user: administrator, want: identity{"alice", ""}},
		"an administrator who is also a member":  {user: administrator, tenants: []string{"a"}, want: identity{"alice", ""}},
		"an administrator who asks for a tenant": {user: administrator, tenants: []string{"a"}, chosen: "a", refused: "an administrator is in no tenant: sign in without one"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := identify("alice", tt.user, tt.tenants, tt.chosen)
			if tt.refused == "" && err != nil || tt.refused != "" && (err == nil || err.Error() != tt.refused) {
				t.Errorf("refused with %v, want %q", err, tt.refused)
			}
			if got != tt.want {
				t.Errorf("it says %+v, want %+v", got, tt.want)
			}
		})
	}
}
