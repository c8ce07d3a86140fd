// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authservice is a small OpenID provider for the platform. People sign in with a name and a password; what their tokens say of
// tenants comes from the Tenants that they are members of, looked up anew for every token.
//
//	authorize   a client begins, with PKCE; its request travels sealed, so that replicas share nothing but keys
//	sign-in     a page asks for name, password and, of those who are in several, a tenant
//	token       a code or a refresh token becomes an ID token of a few minutes
//	keys        what tokens are signed with; made anew now and then, and published until no token needs them
package authservice
