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

// GetID is the client_id.
func (publicClient) GetID() string { return ClientID }

// RedirectURIs are on the loopback interface, at any port.
func (publicClient) RedirectURIs() []string {
	return []string{"http://127.0.0.1", "http://127.0.0.1/", "http://127.0.0.1/callback"}
}

// ApplicationType has the library take loopback addresses alone.
func (publicClient) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }

// AuthMethod is none: there is no secret.
func (publicClient) AuthMethod() oidc.AuthMethod { return oidc.AuthMethodNone }

// ResponseTypes has a code alone.
func (publicClient) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}

// GrantTypes are what tokens are given for.
func (publicClient) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken}
}

// LoginURL is where the user signs in for a sealed request.
func (publicClient) LoginURL(sealed string) string {
	return signInPath + "?" + url.Values{"request": {sealed}}.Encode()
}

// DevMode would relax what is checked.
func (publicClient) DevMode() bool { return false }

// IsScopeAllowed knows no scope but those of OpenID.
func (publicClient) IsScopeAllowed(string) bool { return false }

// The rest is asked of providers whose tokens the library signs; ours signs its own.

// PostLogoutRedirectURIs has none.
func (publicClient) PostLogoutRedirectURIs() []string { return nil }

// AccessTokenType is that of ID tokens.
func (publicClient) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

// IDTokenLifetime is not asked for.
func (publicClient) IDTokenLifetime() time.Duration { return 0 }

// RestrictAdditionalIdTokenScopes leaves none.
//
//nolint:revive // The library's name.
func (publicClient) RestrictAdditionalIdTokenScopes() func([]string) []string { return noScopes }

// RestrictAdditionalAccessTokenScopes leaves none.
func (publicClient) RestrictAdditionalAccessTokenScopes() func([]string) []string { return noScopes }

// IDTokenUserinfoClaimsAssertion is not asked for.
func (publicClient) IDTokenUserinfoClaimsAssertion() bool { return false }

// ClockSkew is not asked for.
func (publicClient) ClockSkew() time.Duration { return 0 }

func noScopes([]string) []string { return nil }
