// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/internal/users"
)

const (
	authorizePath, signInPath, tokenPath, keysPath = "/authorize", "/sign-in", "/token", "/keys"

	// requestLife is how long somebody may take to sign in, codeLife how long their client may take to fetch the tokens.
	requestLife = 10 * time.Minute
	codeLife    = time.Minute
	// maxRequest bounds what a client sends along and gets back, in bytes.
	maxRequest = 2048
)

// provider answers the requests of OpenID clients. What it does not override is not supported: no grant but codes and refresh tokens,
// no other endpoint.
type provider struct {
	op.UnimplementedServer

	issuer    string
	lifetimes Lifetimes
	clock     clock.PassiveClock
	client    client.Client
	users     users.Store
	keys      *keyring
	attempts  *attempts
	spent     *spent
}

// request is what a client asked for, while its user signs in.
type request struct {
	RedirectURI string   `json:"redirectURI"`
	State       string   `json:"state,omitempty"`
	Nonce       string   `json:"nonce,omitempty"`
	Challenge   string   `json:"challenge"`
	Scopes      []string `json:"scopes"`
	Tenant      string   `json:"tenant,omitempty"`
}

// code is what a client gets when its user has signed in, for tokens.
type code struct {
	ID      string  `json:"id"`
	Request request `json:"request"`
	Session session `json:"session"`
}

// session is what a refresh token says. It ends with the user's password.
type session struct {
	Subject  string    `json:"subject"`
	Tenant   string    `json:"tenant,omitempty"`
	Password string    `json:"password"`
	Began    time.Time `json:"began"`
}

var errNoKeys = errors.New("the keys have not been read yet")

// Ready tells whether tokens can be signed.
func (p *provider) Ready(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	if len(p.keys.all()) == 0 {
		return nil, errNoKeys
	}
	return op.NewResponse(map[string]string{"status": "ok"}), nil
}

// Health tells that the program answers.
func (p *provider) Health(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	return op.NewResponse(map[string]string{"status": "ok"}), nil
}

// Discovery says where everything is, and what is supported.
func (p *provider) Discovery(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	return op.NewResponse(&oidc.DiscoveryConfiguration{
		Issuer:                            p.issuer,
		AuthorizationEndpoint:             p.issuer + authorizePath,
		TokenEndpoint:                     p.issuer + tokenPath,
		JwksURI:                           p.issuer + keysPath,
		ScopesSupported:                   []string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess},
		ResponseTypesSupported:            []string{string(oidc.ResponseTypeCode)},
		GrantTypesSupported:               publicClient{}.GrantTypes(),
		SubjectTypesSupported:             []string{"public"},
		IDTokenSigningAlgValuesSupported:  []string{string(jose.ES256)},
		TokenEndpointAuthMethodsSupported: []oidc.AuthMethod{oidc.AuthMethodNone},
		CodeChallengeMethodsSupported:     []oidc.CodeChallengeMethod{oidc.CodeChallengeMethodS256},
		ClaimsSupported:                   []string{"sub", "user_type", "tenant_id"},
	}), nil
}

// Keys publishes what tokens are verified with.
func (p *provider) Keys(context.Context, *op.Request[struct{}]) (*op.Response, error) {
	return op.NewResponse(p.keys.all().usable(p.clock.Now(), p.lifetimes.Token).public()), nil
}

// VerifyAuthRequest finds the client of a request. The library then compares redirect_uri with those of the client.
func (p *provider) VerifyAuthRequest(_ context.Context, r *op.Request[oidc.AuthRequest]) (*op.ClientRequest[oidc.AuthRequest], error) {
	if r.Data.ClientID != ClientID {
		return nil, oidc.ErrInvalidClient().WithDescription("unknown client_id")
	}
	return &op.ClientRequest[oidc.AuthRequest]{Request: r, Client: publicClient{}}, nil
}

// Authorize seals the request, and has the user sign in for it.
func (p *provider) Authorize(_ context.Context, r *op.ClientRequest[oidc.AuthRequest]) (*op.Redirect, error) {
	asked := r.Data
	switch {
	case asked.RequestParam != "":
		return nil, oidc.ErrRequestNotSupported()
	case asked.CodeChallenge == "" || asked.CodeChallengeMethod != oidc.CodeChallengeMethodS256:
		return nil, oidc.ErrInvalidRequest().WithDescription("PKCE is required, with code_challenge_method S256")
	case asked.ResponseMode != "" && asked.ResponseMode != oidc.ResponseModeQuery:
		return nil, oidc.ErrInvalidRequest().WithDescription("response_mode must be query")
	case !slices.Contains(asked.Scopes, oidc.ScopeOpenID):
		return nil, oidc.ErrInvalidScope().WithDescription("scope must contain openid")
	case slices.Contains(asked.Prompt, oidc.PromptNone):
		return nil, oidc.ErrLoginRequired()
	case len(r.URL.RawQuery) > maxRequest:
		return nil, oidc.ErrInvalidRequest().WithDescription("the request is too long")
	}
	sealed, err := p.seal("request", requestLife, request{
		RedirectURI: asked.RedirectURI, State: asked.State, Nonce: asked.Nonce, Challenge: asked.CodeChallenge,
		Scopes: asked.Scopes, Tenant: r.Form.Get("tenant"),
	})
	if err != nil {
		return nil, err
	}
	return op.NewRedirect(publicClient{}.LoginURL(sealed)), nil
}

// VerifyClient accepts the one client, which has no secret: PKCE binds a code to whoever asked for it.
func (p *provider) VerifyClient(_ context.Context, r *op.Request[op.ClientCredentials]) (op.Client, error) {
	if r.Data.ClientID != ClientID || r.Data.ClientSecret != "" || r.Data.ClientAssertion != "" {
		return nil, oidc.ErrInvalidClient().WithDescription("unknown client, or one that has no secret sent one")
	}
	return publicClient{}, nil
}

// CodeExchange gives tokens for a code, once.
func (p *provider) CodeExchange(ctx context.Context, r *op.ClientRequest[oidc.AccessTokenRequest]) (*op.Response, error) {
	var given code
	if err := p.unseal("code", r.Data.Code, &given); err != nil {
		return nil, oidc.ErrInvalidGrant().WithDescription("the code is unknown or has expired")
	}
	challenge := &oidc.CodeChallenge{Challenge: given.Request.Challenge, Method: oidc.CodeChallengeMethodS256}
	if err := op.AuthorizeCodeChallenge(r.Data.CodeVerifier, challenge); err != nil {
		return nil, err
	}
	if r.Data.RedirectURI != given.Request.RedirectURI {
		return nil, oidc.ErrInvalidGrant().WithDescription("redirect_uri is not that of the request")
	}
	if !p.spent.first(given.ID, p.clock.Now()) {
		return nil, oidc.ErrInvalidGrant().WithDescription("the code has been used")
	}
	refresh := ""
	if slices.Contains(given.Request.Scopes, oidc.ScopeOfflineAccess) {
		var err error
		if refresh, err = p.seal("session", p.lifetimes.Session, given.Session); err != nil {
			return nil, err
		}
	}
	return p.tokens(ctx, given.Session, given.Request.Nonce, refresh)
}

// RefreshToken gives the next token of a session that has not ended. The refresh token stays the same.
func (p *provider) RefreshToken(ctx context.Context, r *op.ClientRequest[oidc.RefreshTokenRequest]) (*op.Response, error) {
	var continued session
	if err := p.unseal("session", r.Data.RefreshToken, &continued); err != nil {
		return nil, oidc.ErrInvalidGrant().WithDescription("the session has ended: sign in again")
	}
	return p.tokens(ctx, continued, "", r.Data.RefreshToken)
}

// tokens signs a token for what its user is now: still a user, with the same password, and still a member of the tenant.
func (p *provider) tokens(ctx context.Context, of session, nonce, refresh string) (*op.Response, error) {
	user, err := p.users.Get(ctx, of.Subject)
	if err != nil && !errors.Is(err, users.ErrNotFound) {
		return nil, err
	}
	if err != nil || fingerprint(user) != of.Password {
		return nil, oidc.ErrInvalidGrant().WithDescription("the session has ended: sign in again")
	}
	is, err := p.identity(ctx, of.Subject, user, of.Tenant)
	var refused refusal
	if errors.As(err, &refused) {
		return nil, oidc.ErrInvalidGrant().WithDescription("%s", string(refused))
	}
	if err != nil {
		return nil, err
	}
	token, err := p.sign(is, of.Began, nonce)
	if err != nil {
		return nil, err
	}
	response := op.NewResponse(&oidc.AccessTokenResponse{
		AccessToken: token, IDToken: token, TokenType: oidc.BearerToken, RefreshToken: refresh, ExpiresIn: uint64(p.lifetimes.Token.Seconds()),
	})
	return response, nil
}

func (p *provider) identity(ctx context.Context, name string, user users.User, chosen string) (identity, error) {
	if user.SuperAdmin {
		return identify(name, user, nil, chosen)
	}
	tenants, err := tenantsOf(ctx, p.client, name, chosen)
	if err != nil {
		return identity{}, err
	}
	return identify(name, user, tenants, chosen)
}

// claims are what config/authn/authentication.yaml reads.
type claims struct {
	jwt.Claims

	UserType string           `json:"user_type"`
	TenantID string           `json:"tenant_id,omitempty"`
	Nonce    string           `json:"nonce,omitempty"`
	AuthTime *jwt.NumericDate `json:"auth_time"`
}

func (p *provider) sign(is identity, began time.Time, nonce string) (string, error) {
	now := p.clock.Now()
	signing := p.keys.all().current(now).Signing
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: signing}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	said := claims{
		Claims: jwt.Claims{
			Issuer: p.issuer, Subject: is.subject, Audience: jwt.Audience{ClientID}, ID: randomID(),
			IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(p.lifetimes.Token)),
		},
		UserType: "customer", TenantID: is.tenant, Nonce: nonce, AuthTime: jwt.NewNumericDate(began),
	}
	if is.tenant == "" {
		said.UserType = "super_admin"
	}
	return jwt.Signed(signer).Claims(said).Serialize()
}

// sealed is what travels through clients. Its kind keeps one from being taken for another.
type sealed struct {
	Kind    string          `json:"kind"`
	Expires time.Time       `json:"expires"`
	Content json.RawMessage `json:"content"`
}

func (p *provider) seal(kind string, life time.Duration, content any) (string, error) {
	text, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	now := p.clock.Now()
	whole, err := json.Marshal(sealed{Kind: kind, Expires: now.Add(life), Content: text})
	if err != nil {
		return "", err
	}
	return p.keys.all().crypto(now).Encrypt(string(whole))
}

var errNotSealed = errors.New("it is not ours, or has expired")

func (p *provider) unseal(kind, text string, into any) error {
	now := p.clock.Now()
	whole, err := p.keys.all().crypto(now).Decrypt(text)
	if err != nil {
		return errNotSealed
	}
	var opened sealed
	if err := json.Unmarshal([]byte(whole), &opened); err != nil {
		return err
	}
	if opened.Kind != kind || !now.Before(opened.Expires) {
		return errNotSealed
	}
	return json.Unmarshal(opened.Content, into)
}

// signedIn makes the code for a user who has signed in.
func (p *provider) signedIn(ctx context.Context, asked request, user users.User, is identity) (string, error) {
	slog.InfoContext(ctx, "signed in", "user", is.subject, "tenant", is.tenant)
	return p.seal("code", codeLife, code{
		ID: randomID(), Request: asked,
		Session: session{Subject: is.subject, Tenant: is.tenant, Password: fingerprint(user), Began: p.clock.Now()},
	})
}
