// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	_ "embed"
	"errors"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/tantilium/cloud-runner/internal/users"
)

//go:embed sign_in.html
var signInHTML string

var signInPage = template.Must(template.New("sign-in").Parse(signInHTML))

// form is what the page shows.
type form struct {
	Request, Username, Tenant, Error string
}

// wrong is said of a password that is wrong, and of a user that is not there.
const wrong = "name or password is wrong"

// wentWrong is said of what is no fault of whoever signs in.
const wentWrong = "something went wrong: try again"

// showSignIn asks for name and password.
func (p *provider) showSignIn(w http.ResponseWriter, r *http.Request) {
	asked, sealed, found := p.askedIn(w, r)
	if found {
		render(w, r, http.StatusOK, form{Request: sealed, Tenant: asked.Tenant})
	}
}

// signIn checks name and password, and sends the user back to their client with a code.
func (p *provider) signIn(w http.ResponseWriter, r *http.Request) {
	asked, sealed, found := p.askedIn(w, r)
	if !found {
		return
	}
	shown := form{Request: sealed, Username: r.PostForm.Get("username"), Tenant: r.PostForm.Get("tenant")}
	refuse := func(status int, message string) {
		shown.Error = message
		render(w, r, status, shown)
	}
	if !users.ValidName(shown.Username) {
		refuse(http.StatusUnauthorized, wrong)
		return
	}
	if !p.attempts.allow(shown.Username, p.clock.Now()) {
		refuse(http.StatusTooManyRequests, "too many tries: wait a minute")
		return
	}
	user, err := p.users.Get(r.Context(), shown.Username)
	if err != nil && !errors.Is(err, users.ErrNotFound) {
		slog.ErrorContext(r.Context(), "reading a user", "error", err)
		refuse(http.StatusInternalServerError, wentWrong)
		return
	}
	if !user.HasPassword(r.PostForm.Get("password")) {
		slog.InfoContext(r.Context(), "refused to sign in", "name", shown.Username)
		refuse(http.StatusUnauthorized, wrong)
		return
	}
	is, err := p.identity(r.Context(), shown.Username, user, shown.Tenant)
	var refused refusal
	if errors.As(err, &refused) {
		refuse(http.StatusForbidden, string(refused))
		return
	}
	if err == nil {
		shown.Request, err = p.signedIn(r.Context(), asked, user, is)
	}
	if err != nil {
		slog.ErrorContext(r.Context(), "signing in", "error", err)
		refuse(http.StatusInternalServerError, wentWrong)
		return
	}
	//nolint:gosec // The address was compared with the client's before it was sealed.
	http.Redirect(w, r, callback(asked, shown.Request), http.StatusSeeOther)
}

// askedIn opens the request that somebody signs in for.
func (p *provider) askedIn(w http.ResponseWriter, r *http.Request) (asked request, sealed string, found bool) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return asked, "", false
	}
	sealed = r.Form.Get("request")
	if err := p.unseal("request", sealed, &asked); err != nil {
		http.Error(w, "this took too long: begin again where you came from", http.StatusBadRequest)
		return asked, "", false
	}
	return asked, sealed, true
}

// callback is where the client waits. It was compared with those of the client before the request was sealed.
func callback(asked request, code string) string {
	to, err := url.Parse(asked.RedirectURI)
	if err != nil {
		return ""
	}
	query := to.Query()
	query.Set("code", code)
	if asked.State != "" {
		query.Set("state", asked.State)
	}
	to.RawQuery = query.Encode()
	return to.String()
}

// render shows the page, or, to programs that ask for plain text, the error alone.
func render(w http.ResponseWriter, r *http.Request, status int, shown form) {
	if shown.Error != "" && r.Header.Get("Accept") == "text/plain" {
		http.Error(w, shown.Error, status)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := signInPage.Execute(w, shown); err != nil {
		slog.WarnContext(r.Context(), "showing the page", "error", err)
	}
}
