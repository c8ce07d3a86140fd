// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package signin signs in to the platform's OpenID provider from a terminal, and makes of the session what kubectl asks a credential
// plugin for. It goes the way a browser would: it is a client like any other, and the provider's only knows the page.
package signin

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"golang.org/x/oauth2"

	"github.com/tantilium/cloud-runner/internal/authservice"
)

// redirectURI is where a browser would bring the code. Nobody listens there: the code is taken from the address.
const redirectURI = "http://127.0.0.1/callback"

const (
	// timeout bounds each request.
	timeout = 30 * time.Second
	// clockOffset is how much this machine's clock may differ from the provider's. The library also has a token expire that much earlier,
	// so it is less than the shortest life of one.
	clockOffset = 30 * time.Second
	// maxMessage bounds what is shown of an answer, in bytes.
	maxMessage = 1024
)

// Provider is how the OpenID provider is reached.
type Provider struct {
	// Issuer is its URL.
	Issuer string `json:"issuer"`
	// CertificateAuthority has PEM certificates that are trusted for it; empty means those of the machine.
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
	// ConnectTo is a HOST:PORT to connect to in place of the issuer's, and TLSServerName the name that is then asked for and
	// verified. Both are empty where the issuer's URL leads there by itself.
	ConnectTo     string `json:"connectTo,omitempty"`
	TLSServerName string `json:"tlsServerName,omitempty"`
}

func (p Provider) httpClient() (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: p.TLSServerName}
	if p.CertificateAuthority != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(p.CertificateAuthority)) {
			return nil, errors.New("the certificate authority has no certificate in it")
		}
	}
	dialer := &net.Dialer{Timeout: timeout}
	transport := &http.Transport{
		TLSClientConfig: config, Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if p.ConnectTo != "" {
				address = p.ConnectTo
			}
			return dialer.DialContext(ctx, network, address)
		},
	}
	if p.ConnectTo != "" {
		transport.Proxy = nil
	}
	return &http.Client{
		Transport: transport, Timeout: timeout,
		// Where a redirect leads is looked at first.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

func (p Provider) relyingParty(ctx context.Context) (rp.RelyingParty, error) {
	if !strings.HasPrefix(p.Issuer, "https://") {
		return nil, fmt.Errorf("issuer %q: only https is spoken", p.Issuer)
	}
	client, err := p.httpClient()
	if err != nil {
		return nil, err
	}
	party, err := rp.NewRelyingPartyOIDC(ctx, p.Issuer, authservice.ClientID, "", redirectURI,
		[]string{oidc.ScopeOpenID, oidc.ScopeOfflineAccess}, rp.WithHTTPClient(client), rp.WithAuthStyle(oauth2.AuthStyleInParams),
		rp.WithVerifierOpts(rp.WithIssuedAtOffset(clockOffset)))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", p.Issuer, err)
	}
	return party, nil
}

// Login is who signs in.
type Login struct {
	User, Password string
	// Tenant is the one to sign in to, for those who are in several.
	Tenant string
}

// SignIn begins a session.
func (p Provider) SignIn(ctx context.Context, as Login) (Session, error) {
	party, err := p.relyingParty(ctx)
	if err != nil {
		return Session{}, err
	}
	state, verifier := rand.Text(), oauth2.GenerateVerifier()
	begin := rp.AuthURL(state, party, rp.WithCodeChallenge(oidc.NewSHACodeChallenge(verifier)))
	page, err := p.follow(ctx, party.HttpClient(), http.MethodGet, begin, nil)
	if err != nil {
		return Session{}, err
	}
	if page.Scheme+"://"+page.Host != p.Issuer {
		return Session{}, fmt.Errorf("%s has people sign in at %s: the password is not sent there", p.Issuer, page.Host)
	}
	request := page.Query().Get("request")
	page.RawQuery = ""
	back, err := p.follow(ctx, party.HttpClient(), http.MethodPost, page.String(),
		url.Values{"request": {request}, "username": {as.User}, "password": {as.Password}, "tenant": {as.Tenant}})
	if err != nil {
		return Session{}, err
	}
	if !strings.HasPrefix(back.String(), redirectURI+"?") || back.Query().Get("state") != state {
		return Session{}, errors.New("the answer is not that to our request")
	}
	tokens, err := rp.CodeExchange[*oidc.IDTokenClaims](ctx, back.Query().Get("code"), party, rp.WithCodeVerifier(verifier))
	if err != nil {
		return Session{}, said(err)
	}
	if tokens.RefreshToken == "" {
		return Session{}, errors.New("the provider begins no sessions: there is no refresh token")
	}
	return Session{Provider: p, User: as.User, RefreshToken: tokens.RefreshToken}, nil
}

// follow makes a request and returns where its answer leads. Any other answer is an error, with what it says.
func (p Provider) follow(ctx context.Context, client *http.Client, method, to string, form url.Values) (*url.URL, error) {
	request, err := http.NewRequestWithContext(ctx, method, to, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/plain")
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusFound && response.StatusCode != http.StatusSeeOther {
		text, err := io.ReadAll(io.LimitReader(response.Body, maxMessage))
		if err != nil {
			return nil, err
		}
		return nil, errors.New(strings.TrimSpace(string(text)))
	}
	return response.Location()
}

// said leaves of an error what the provider says to its user.
func said(err error) error {
	var oauth *oauth2.RetrieveError
	if errors.As(err, &oauth) && oauth.ErrorDescription != "" {
		return errors.New(oauth.ErrorDescription)
	}
	var openID *oidc.Error
	if errors.As(err, &openID) && openID.Description != "" {
		return errors.New(openID.Description)
	}
	return err
}
