// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// whoIs asks kube-apiserver whom it takes the bearer of a token for.
func whoIs(t *testing.T, token string) (authenticationv1.UserInfo, error) {
	t.Helper()
	bearer, err := kubernetes.NewForConfig(bearing(token))
	if err != nil {
		t.Fatal(err)
	}
	review, err := bearer.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func TestWhoATokenIs(t *testing.T) {
	t.Parallel()
	expires := time.Now().Add(time.Hour).Unix()
	extra := func(kind, tenant string) map[string]authenticationv1.ExtraValue {
		extra := map[string]authenticationv1.ExtraValue{
			"kubeopera.io/user-type": {kind}, "kubeopera.io/token-expires": {strconv.FormatInt(expires, 10)},
		}
		if tenant != "" {
			extra["kubeopera.io/tenant-id"] = authenticationv1.ExtraValue{tenant}
		}
		return extra
	}
	customer := func(more ...string) []string {
		return append(append([]string{"kubeopera:customers", "kubeopera:tenant:alice-default"}, more...), "system:authenticated")
	}
	tests := map[string]struct {
		claims claims
		want   authenticationv1.UserInfo
	}{
		"a customer": {want: authenticationv1.UserInfo{Username: "kubeopera:alice", Groups: customer(), Extra: extra("customer", "alice-default")}},
		"a customer with groups": {
			claims: claims{"groups": []string{"devs", "ops"}},
			want: authenticationv1.UserInfo{
				Username: "kubeopera:alice", Groups: customer("kubeopera:tenant:alice-default:devs", "kubeopera:tenant:alice-default:ops"), Extra: extra("customer", "alice-default"),
			},
		},
		"a super_admin": {
			claims: claims{"user_type": "super_admin", "tenant_id": nil},
			want:   authenticationv1.UserInfo{Username: "kubeopera:alice", Groups: []string{"kubeopera:super-admins", "system:authenticated"}, Extra: extra("super_admin", "")},
		},
		"a super_admin whose tenant is empty": {
			claims: claims{"user_type": "super_admin", "tenant_id": ""},
			want:   authenticationv1.UserInfo{Username: "kubeopera:alice", Groups: []string{"kubeopera:super-admins", "system:authenticated"}, Extra: extra("super_admin", "")},
		},
		"a super_admin with groups, which count for nothing": {
			claims: claims{"user_type": "super_admin", "tenant_id": nil, "groups": []string{"devs"}},
			want:   authenticationv1.UserInfo{Username: "kubeopera:alice", Groups: []string{"kubeopera:super-admins", "system:authenticated"}, Extra: extra("super_admin", "")},
		},
		"one with an address that is verified": {
			claims: claims{"email": "alice@example.com", "email_verified": true},
			want:   authenticationv1.UserInfo{Username: "kubeopera:alice", Groups: customer(), Extra: extra("customer", "alice-default")},
		},
		"a subject of another provider": {
			claims: claims{"sub": "auth0|5f7c@example.com"},
			want:   authenticationv1.UserInfo{Username: "kubeopera:auth0|5f7c@example.com", Groups: customer(), Extra: extra("customer", "alice-default")},
		},
		"a subject that is a number in base64, as Entra ID has them": {
			claims: claims{"sub": "-_9aZ3"},
			want:   authenticationv1.UserInfo{Username: "kubeopera:-_9aZ3", Groups: customer(), Extra: extra("customer", "alice-default")},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			all := tokens.customer(tt.claims)
			all["exp"] = expires
			got, err := whoIs(t, tokens.signed(t, all))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("who it is (-want +got):\n%s", diff)
			}
		})
	}
}

// A token that is not just as it should be is nobody's: it never counts as one with less.
func TestATokenThatIsNotAsItShouldBeIsRefused(t *testing.T) {
	t.Parallel()
	many := make([]string, 51)
	for i := range many {
		many[i] = fmt.Sprintf("group-%d", i)
	}
	tests := map[string]claims{
		"no tenant":                          {"tenant_id": nil},
		"an empty tenant":                    {"tenant_id": ""},
		"two tenants":                        {"tenant_id": []string{"alice-default", "bob-default"}},
		"one tenant in a list":               {"tenant_id": []string{"alice-default"}},
		"a tenant that is an object":         {"tenant_id": map[string]any{"id": "alice-default"}},
		"a tenant that is a number":          {"tenant_id": 7},
		"a tenant that is true":              {"tenant_id": true},
		"a tenant in upper case":             {"tenant_id": "Alice-default"},
		"a tenant with a slash":              {"tenant_id": "alice/default"},
		"a tenant with dots":                 {"tenant_id": "alice.."},
		"a tenant with a line break":         {"tenant_id": "alice-default\n"},
		"a tenant with a line break inside":  {"tenant_id": "alice\nbob"},
		"a tenant with a colon":              {"tenant_id": "alice:devs"},
		"a tenant with two dashes":           {"tenant_id": "alice--staging"},
		"a tenant with a blank":              {"tenant_id": " alice-default"},
		"a tenant in other letters":          {"tenant_id": "аlice-default"},
		"a tenant with a NUL":                {"tenant_id": "alice\x00"},
		"a tenant of 25 characters":          {"tenant_id": strings.Repeat("a", 25)},
		"a tenant of 64 characters":          {"tenant_id": strings.Repeat("a", 64)},
		"no subject":                         {"sub": nil},
		"an empty subject":                   {"sub": ""},
		"a subject of the system":            {"sub": "system:admin"},
		"a subject with a colon":             {"sub": "tenant:bob-default"},
		"a subject with a line break":        {"sub": "alice\n"},
		"a subject that is a list":           {"sub": []string{"alice"}},
		"a subject that is too long":         {"sub": strings.Repeat("a", 201)},
		"no user type":                       {"user_type": nil},
		"an empty user type":                 {"user_type": ""},
		"an unknown user type":               {"user_type": "admin"},
		"a user type in upper case":          {"user_type": "SUPER_ADMIN"},
		"two user types":                     {"user_type": []string{"customer", "super_admin"}},
		"one user type in a list":            {"user_type": []string{"super_admin"}},
		"a super_admin with a tenant":        {"user_type": "super_admin"},
		"a super_admin with a list":          {"user_type": "super_admin", "tenant_id": []string{}},
		"a super_admin with a tenant object": {"user_type": "super_admin", "tenant_id": map[string]any{}},
		"a super_admin whose tenant is null": {"user_type": "super_admin", "tenant_id": json.RawMessage("null")},
		"a customer whose tenant is null":    {"tenant_id": json.RawMessage("null")},
		"the masters as a group":             {"groups": []string{"system:masters"}},
		"administrators as a group":          {"groups": []string{"kubeopera:super-admins"}},
		"another tenant as a group":          {"groups": []string{"x:kubeopera:tenant:bob-default"}},
		"groups that are no list":            {"groups": "devs"},
		"groups that are numbers":            {"groups": []int{1}},
		"groups that are an object":          {"groups": map[string]any{"devs": true}},
		"an empty group":                     {"groups": []string{""}},
		"a group with a line break":          {"groups": []string{"devs\n"}},
		"a group that is too long":           {"groups": []string{strings.Repeat("a", 64)}},
		"too many groups":                    {"groups": many},
		"an address that is not verified":    {"email": "alice@example.com", "email_verified": false},
		"an address of which it is unknown":  {"email": "alice@example.com"},
		"an address verified by a word":      {"email": "alice@example.com", "email_verified": "true"},
		"another audience":                   {"aud": "kubernetes"},
		"no audience":                        {"aud": nil},
		"another issuer":                     {"iss": "https://kubernetes.default.svc.cluster.local"},
		"no issuer":                          {"iss": nil},
		"it has expired":                     {"exp": time.Now().Add(-time.Minute).Unix()},
		"it never expires":                   {"exp": nil},
		"it counts only later":               {"nbf": time.Now().Add(time.Hour).Unix()},
	}
	for name, others := range tests {
		t.Run(name, func(t *testing.T) {
			isNobodys(t, tokens.signed(t, tokens.customer(others)))
		})
	}
}

func TestATokenThatTheIssuerDidNotSignIsRefused(t *testing.T) {
	t.Parallel()
	public, err := x509.MarshalPKIXPublicKey(tokens.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	good := tokens.signed(t, tokens.customer(nil))
	if _, err := whoIs(t, good); err != nil {
		t.Fatal("the one that is altered here is refused itself:", err)
	}
	parts := strings.Split(good, ".")
	claimsOf := func(others claims) string {
		text, err := json.Marshal(tokens.customer(others))
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
	tests := map[string]string{
		"another key":                       signedWith(t, jose.ES256, jose.JSONWebKey{Key: otherKey(t), KeyID: keyID}, tokens.customer(nil)),
		"another key of another name":       signedWith(t, jose.ES256, jose.JSONWebKey{Key: otherKey(t), KeyID: "second"}, tokens.customer(nil)),
		"the public key as a shared secret": signedWith(t, jose.HS256, public, tokens.customer(nil)),
		"no signature, and so it says":      none + "." + claimsOf(nil) + ".",
		"no signature":                      parts[0] + "." + parts[1] + ".",
		"the signature of other claims":     parts[0] + "." + claimsOf(claims{"tenant_id": "bob-default"}) + "." + parts[2],
		"a part too few":                    parts[0] + "." + parts[1],
		"something that is no token at all": "alice",
	}
	for name, token := range tests {
		t.Run(name, func(t *testing.T) { isNobodys(t, token) })
	}
}

func isNobodys(t *testing.T, token string) {
	t.Helper()
	who, err := whoIs(t, token)
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("it is %s of %v, error %v; want it to be refused", who.Username, who.Groups, err)
	}
}
