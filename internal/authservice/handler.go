// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/internal/users"
)

// Lifetimes say how long what the provider makes is good for.
type Lifetimes struct {
	// Token is how long a token counts: at most an hour, since who is removed from a tenant keeps it until then.
	Token time.Duration
	// Session is how long tokens can be renewed after signing in, without the password.
	Session time.Duration
	// Key is how long tokens are signed with one key.
	Key time.Duration
}

func (l Lifetimes) longest() time.Duration { return max(l.Token, l.Session) }

// Options are what a provider needs.
type Options struct {
	// Issuer is the URL under which everybody reaches the provider: https, without a path.
	Issuer string
	// Client reads Tenants and the Secrets of users and keys, and writes keys. It reads what is there now: it has no cache.
	Client    client.Client
	Lifetimes Lifetimes
	Clock     clock.PassiveClock
}

// validate says what is wrong.
func (o Options) validate() error {
	issuer, err := url.Parse(o.Issuer)
	if err != nil {
		return fmt.Errorf("issuer: %w", err)
	}
	l := o.Lifetimes
	switch {
	case issuer.Scheme != "https" || issuer.Host == "" || "https://"+issuer.Host != o.Issuer:
		return errors.New("the issuer must be https://HOST or https://HOST:PORT")
	case l.Token < time.Minute || l.Token > time.Hour:
		return errors.New("a token lives from one minute to one hour")
	case l.Session < l.Token:
		return errors.New("a session lives as long as a token, at least")
	case l.Key < time.Hour:
		return errors.New("a key is used for an hour, at least")
	}
	return nil
}

func newProvider(o Options) (*provider, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &provider{
		issuer: o.Issuer, lifetimes: o.Lifetimes, clock: o.Clock, client: o.Client, users: users.Store{Client: o.Client},
		keys:     &keyring{client: o.Client, clock: o.Clock, lifetimes: o.Lifetimes},
		attempts: newAttempts(), spent: &spent{codes: map[string]time.Time{}},
	}, nil
}

// handler serves the provider.
func (p *provider) handler() http.Handler {
	endpoints := op.Endpoints{Authorization: op.NewEndpoint(authorizePath), Token: op.NewEndpoint(tokenPath), JwksURI: op.NewEndpoint(keysPath)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+signInPath, p.showSignIn)
	mux.HandleFunc("POST "+signInPath, p.signIn)
	// No page of another origin has any business here.
	mux.Handle("/", op.RegisterServer(p, endpoints, op.WithServerCORSOptions(nil)))
	return careful(p.withKeys(mux))
}

// withKeys has clients come again while the keys have not been read: without them nothing is signed or opened.
func (p *provider) withKeys(next http.Handler) http.Handler {
	needed := []string{authorizePath, signInPath, tokenPath, keysPath}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(needed, r.URL.Path) && len(p.keys.all()) == 0 {
			w.Header().Set("Retry-After", "1")
			http.Error(w, errNoKeys.Error(), http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// maxBody bounds what is read of a request, in bytes.
const maxBody = 16 << 10

// careful keeps what is secret out of caches, frames, and the addresses that others log.
func careful(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == tokenPath && (r.Method != http.MethodPost || r.URL.RawQuery != "") {
			http.Error(w, "tokens are asked for with POST, and without a query", http.StatusMethodNotAllowed)
			return
		}
		header := w.Header()
		header.Set("Cache-Control", "no-store")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Strict-Transport-Security", "max-age=31536000")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'")
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next.ServeHTTP(w, r)
	})
}
