// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"net/url"
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// ClientID names the one client, which is every program on a user's machine, and the audience of the tokens.
const ClientID = "kubeopera"

// publicClient is a program on its user's machine: it has no secret, and is answered on that machine alone.
type publicClient struct{}

func (publicClient) GetID() string { return ClientID }

// RedirectURIs are on the loopback interface, at any port.
func (publicClient) RedirectURIs() []string {
	return []string{"http://127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1/callback"}
}
func (publicClient) PostLogoutRedirectURIs() []string    { return nil }
func (publicClient) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }
func (publicClient) AuthMethod() oidc.AuthMethod         { return oidc.AuthMethodNone }
func (publicClient) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}
func (publicClient) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken}
}
func (publicClient) LoginURL(sealed string) string {
	return signInPath + "?" + url.Values{"request": {sealed}}.Encode()
}
func (publicClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

// IDTokenLifetime is not asked for: the provider signs tokens itself.
func (publicClient) IDTokenLifetime() time.Duration { return 0 }
func (publicClient) DevMode() bool                  { return false }
func (publicClient) RestrictAdditionalIdTokenScopes() func([]string) []string {
	return func([]string) []string { return nil }
}
func (publicClient) RestrictAdditionalAccessTokenScopes() func([]string) []string {
	return func([]string) []string { return nil }
}
func (publicClient) IsScopeAllowed(string) bool           { return false }
func (publicClient) IDTokenUserinfoClaimsAssertion() bool { return false }
func (publicClient) ClockSkew() time.Duration             { return 0 }
