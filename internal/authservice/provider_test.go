// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	. "github.com/onsi/gomega"
	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/users"
)

const (
	password = "correct horse battery"
	verifier = "a-verifier-that-is-long-enough-to-be-one-of-them"
	redirect = "http://127.0.0.1:8000/callback"
)

// served is a provider that answers, with alice of tenant a, bob of none, carol of a and b, and root, an administrator.
type served struct {
	*provider

	server *httptest.Server
	http   *http.Client
	clock  *clocktesting.FakePassiveClock
}

func serve(t *testing.T) *served {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	g.Expect(err).NotTo(HaveOccurred())
	entry := func(admin bool) []byte {
		text, err := json.Marshal(users.User{PasswordHash: string(hash), SuperAdmin: admin})
		g.Expect(err).NotTo(HaveOccurred())
		return text
	}
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: users.Namespace, Name: name}, Data: data}
	}
	tenant := func(id string, members ...v1alpha1.Member) *v1alpha1.Tenant {
		return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.TenantSpec{Members: members}}
	}
	user := func(name string) v1alpha1.Member {
		return v1alpha1.Member{Kind: v1alpha1.MemberUser, Name: "kubeopera:" + name, Role: v1alpha1.MemberViewer}
	}
	s := &served{clock: clocktesting.NewFakePassiveClock(began)}
	s.provider, err = newProvider(Options{
		Issuer: "https://auth.example.com", Lifetimes: lifetimes, Clock: s.clock,
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			secret(users.Secret, map[string][]byte{"alice": entry(false), "bob": entry(false), "carol": entry(false), "root": entry(true)}),
			secret(KeysSecret, nil),
			tenant("a", user("alice"), user("carol")),
			tenant("b", user("carol"), v1alpha1.Member{Kind: v1alpha1.MemberGroup, Name: "kubeopera:bob"},
				v1alpha1.Member{Kind: v1alpha1.MemberServiceAccount, Name: "bob", Namespace: "tenant-b"}),
		).Build(),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.keys.reload(t.Context())).To(Succeed())
	s.server = httptest.NewTLSServer(s.handler())
	t.Cleanup(s.server.Close)
	s.http = s.server.Client()
	s.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return s
}

// answer is what a test looks at of a response.
type answer struct {
	status   int
	body     string
	location *url.URL
	header   http.Header
}

func (s *served) do(t *testing.T, method, path string, query, form url.Values) answer {
	t.Helper()
	g := NewWithT(t)
	to := s.server.URL + path
	if query != nil {
		to += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(form.Encode()))
	g.Expect(err).NotTo(HaveOccurred())
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	request.Header.Set("Accept", "text/plain")
	response, err := s.http.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(response.Body.Close()).To(Succeed())
	location, err := response.Location()
	if err != nil {
		location = &url.URL{}
	}
	return answer{status: response.StatusCode, body: strings.TrimSpace(string(body)), location: location, header: response.Header}
}

// with is a copy of values with others in place; an empty one takes it away.
func with(values url.Values, pairs ...string) url.Values {
	all := url.Values{}
	for name := range values {
		all.Set(name, values.Get(name))
	}
	for i := 0; i < len(pairs); i += 2 {
		all.Set(pairs[i], pairs[i+1])
		if pairs[i+1] == "" {
			all.Del(pairs[i])
		}
	}
	return all
}

func authorization() url.Values {
	return url.Values{
		"client_id": {ClientID}, "redirect_uri": {redirect}, "response_type": {"code"}, "scope": {"openid offline_access"}, "state": {"mine"},
		"code_challenge": {"qH6Vg--wW6ZaLd9ZZ4ij8dA8PXX6SqxV65wW_69SOiA"}, "code_challenge_method": {"S256"},
	}
}

// request begins as a client does, and gives what it gets to sign in for.
func (s *served) request(t *testing.T, pairs ...string) string {
	t.Helper()
	answered := s.do(t, http.MethodGet, authorizePath, with(authorization(), pairs...), nil)
	NewWithT(t).Expect(answered.status).To(Equal(http.StatusFound), answered.body)
	return answered.location.Query().Get("request")
}

func (s *served) submit(t *testing.T, name, password, tenant string) answer {
	t.Helper()
	return s.do(t, http.MethodPost, signInPath, nil, url.Values{
		"request": {s.request(t)}, "username": {name}, "password": {password}, "tenant": {tenant},
	})
}

// code signs somebody in who may.
func (s *served) code(t *testing.T, name, tenant string) string {
	t.Helper()
	answered := s.submit(t, name, password, tenant)
	g := NewWithT(t)
	g.Expect(answered.status).To(Equal(http.StatusSeeOther), answered.body)
	g.Expect(answered.location.Query().Get("state")).To(Equal("mine"))
	return answered.location.Query().Get("code")
}

func exchange(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "client_id": {ClientID}, "code": {code}, "redirect_uri": {redirect}, "code_verifier": {verifier}}
}

func refreshing(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {ClientID}, "refresh_token": {token}}
}

type tokens struct {
	Access  string `json:"access_token"`
	ID      string `json:"id_token"`
	Refresh string `json:"refresh_token"`
	Expires int    `json:"expires_in"`
}

func (s *served) tokens(t *testing.T, form url.Values) tokens {
	t.Helper()
	g := NewWithT(t)
	answered := s.do(t, http.MethodPost, tokenPath, nil, form)
	g.Expect(answered.status).To(Equal(http.StatusOK), answered.body)
	g.Expect(answered.header.Get("Cache-Control")).To(Equal("no-store"))
	var got tokens
	g.Expect(json.Unmarshal([]byte(answered.body), &got)).To(Succeed())
	return got
}

// says verifies a token with what is published, and gives its claims.
func (s *served) says(t *testing.T, token string) map[string]any {
	t.Helper()
	g := NewWithT(t)
	var published jose.JSONWebKeySet
	g.Expect(json.Unmarshal([]byte(s.do(t, http.MethodGet, keysPath, nil, nil).body), &published)).To(Succeed())
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	g.Expect(err).NotTo(HaveOccurred())
	said := map[string]any{}
	g.Expect(parsed.Claims(&published, &said)).To(Succeed())
	return said
}

func TestWhoSignsInGetsATokenThatSaysWhoTheyAre(t *testing.T) {
	for name, tt := range map[string]struct{ user, asked, userType, tenant string }{
		"a member of one tenant": {"alice", "", "customer", "a"},
		"a member of two":        {"carol", "b", "customer", "b"},
		"an administrator":       {"root", "", "super_admin", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := serve(t)
			got := s.tokens(t, exchange(s.code(t, tt.user, tt.asked)))
			said := s.says(t, got.ID)
			g.Expect(said).To(HaveKey("jti"))
			delete(said, "jti")
			want := map[string]any{
				"iss": "https://auth.example.com", "aud": ClientID, "sub": tt.user, "user_type": tt.userType,
				"iat": float64(began.Unix()), "auth_time": float64(began.Unix()), "exp": float64(began.Add(lifetimes.Token).Unix()),
			}
			if tt.tenant != "" {
				want["tenant_id"] = tt.tenant
			}
			g.Expect(said).To(Equal(want))
			g.Expect(got.Expires).To(Equal(600))
		})
	}
}

func TestATokenIsRenewedUntilTheSessionEnds(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	first := s.tokens(t, exchange(s.code(t, "alice", "")))
	s.clock.SetTime(began.Add(lifetimes.Session - time.Second))
	next := s.tokens(t, refreshing(first.Refresh))
	g.Expect(next.Refresh).To(Equal(first.Refresh))
	g.Expect(s.says(t, next.ID)).To(And(HaveKeyWithValue("tenant_id", "a"), HaveKeyWithValue("exp", float64(s.clock.Now().Add(lifetimes.Token).Unix()))))
	s.clock.SetTime(began.Add(lifetimes.Session))
	s.refused(t, refreshing(first.Refresh), "the session has ended: sign in again")
}

func TestWithoutOfflineAccessThereIsNoSession(t *testing.T) {
	s := serve(t)
	answered := s.do(t, http.MethodPost, signInPath, nil,
		url.Values{"request": {s.request(t, "scope", "openid")}, "username": {"alice"}, "password": {password}})
	NewWithT(t).Expect(s.tokens(t, exchange(answered.location.Query().Get("code"))).Refresh).To(BeEmpty())
}

// refused asks for tokens that must not be given.
func (s *served) refused(t *testing.T, form url.Values, why string) {
	t.Helper()
	answered := s.do(t, http.MethodPost, tokenPath, nil, form)
	g := NewWithT(t)
	g.Expect(answered.status).To(BeElementOf(http.StatusBadRequest, http.StatusUnauthorized), answered.body)
	g.Expect(answered.body).To(ContainSubstring(why))
	g.Expect(answered.body).NotTo(ContainSubstring("id_token"))
}

func TestWhatHappenedSinceIsSeenAtTheNextToken(t *testing.T) {
	setMembers := func(t *testing.T, s *served, id string, members ...v1alpha1.Member) {
		t.Helper()
		g := NewWithT(t)
		var tenant v1alpha1.Tenant
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Name: id}, &tenant)).To(Succeed())
		tenant.Spec.Members = members
		g.Expect(s.client.Update(t.Context(), &tenant)).To(Succeed())
	}
	for name, tt := range map[string]struct {
		user, tenant string
		happens      func(*testing.T, *served)
		why          string
	}{
		"they are a member no more": {"alice", "", func(t *testing.T, s *served) {
			t.Helper()
			setMembers(t, s, "a")
		}, "you are no member of a tenant"},
		"they are a member of another only": {"carol", "a", func(t *testing.T, s *served) {
			t.Helper()
			setMembers(t, s, "a", v1alpha1.Member{Kind: v1alpha1.MemberUser, Name: "kubeopera:alice"})
		}, "you are no member of that tenant; yours: b"},
		"the tenant is gone": {"alice", "", func(t *testing.T, s *served) {
			t.Helper()
			NewWithT(t).Expect(s.client.Delete(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "a"}})).To(Succeed())
		}, "you are no member of a tenant"},
		"they are a user no more": {"alice", "", func(t *testing.T, s *served) {
			t.Helper()
			NewWithT(t).Expect(s.users.Remove(t.Context(), "alice")).To(Succeed())
		}, "sign in again"},
		"they have another password": {"alice", "", func(t *testing.T, s *served) {
			t.Helper()
			NewWithT(t).Expect(s.users.Put(t.Context(), "alice", users.User{PasswordHash: "another"})).To(Succeed())
		}, "sign in again"},
		"they are an administrator no more": {"root", "", func(t *testing.T, s *served) {
			t.Helper()
			was, err := s.users.Get(t.Context(), "root")
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			was.SuperAdmin = false
			NewWithT(t).Expect(s.users.Put(t.Context(), "root", was)).To(Succeed())
		}, "you are no member of a tenant"},
		"they are an administrator now": {"alice", "", func(t *testing.T, s *served) {
			t.Helper()
			was, err := s.users.Get(t.Context(), "alice")
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			was.SuperAdmin = true
			NewWithT(t).Expect(s.users.Put(t.Context(), "alice", was)).To(Succeed())
		}, "sign in without one"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			session := s.tokens(t, exchange(s.code(t, tt.user, tt.tenant))).Refresh
			code := s.code(t, tt.user, tt.tenant)
			tt.happens(t, s)
			s.refused(t, refreshing(session), tt.why)
			s.refused(t, exchange(code), tt.why)
		})
	}
}

func TestACodeIsGoodForItsClientOnce(t *testing.T) {
	s := serve(t)
	session := s.tokens(t, exchange(s.code(t, "alice", ""))).Refresh
	for name, tt := range map[string]struct {
		alter []string
		why   string
	}{
		"no verifier":             {[]string{"code_verifier", ""}, "code_verifier"},
		"another verifier":        {[]string{"code_verifier", strings.Repeat("x", 48)}, "invalid code_verifier"},
		"the challenge as one":    {[]string{"code_verifier", authorization().Get("code_challenge")}, "invalid code_verifier"},
		"another address":         {[]string{"redirect_uri", "http://127.0.0.1:8001/callback"}, "redirect_uri"},
		"no address":              {[]string{"redirect_uri", ""}, "redirect_uri"},
		"another client":          {[]string{"client_id", "other"}, "unknown client"},
		"no client":               {[]string{"client_id", ""}, "client_id"},
		"a client with a secret":  {[]string{"client_secret", "secret"}, "unknown client"},
		"a session as the code":   {[]string{"code", session}, "unknown or has expired"},
		"a request as the code":   {[]string{"code", s.request(t)}, "unknown or has expired"},
		"something else":          {[]string{"code", "a.b.c.d.e"}, "unknown or has expired"},
		"no code":                 {[]string{"code", ""}, "code missing"},
		"a password for a token":  {[]string{"grant_type", "password"}, "not supported"},
		"the client for itself":   {[]string{"grant_type", "client_credentials"}, "not allowed"},
		"a token for another":     {[]string{"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"}, "not allowed"},
		"a token of the client's": {[]string{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion missing"},
	} {
		t.Run(name, func(t *testing.T) { s.refused(t, with(exchange(s.code(t, "alice", "")), tt.alter...), tt.why) })
		s.clock.SetTime(s.clock.Now().Add(attemptEvery))
	}
	t.Run("a second time", func(t *testing.T) {
		code := s.code(t, "alice", "")
		s.tokens(t, exchange(code))
		s.refused(t, exchange(code), "has been used")
	})
	t.Run("too late", func(t *testing.T) {
		code := s.code(t, "alice", "")
		s.clock.SetTime(s.clock.Now().Add(codeLife))
		s.refused(t, exchange(code), "has expired")
	})
	t.Run("a code as a session", func(t *testing.T) { s.refused(t, refreshing(s.code(t, "alice", "")), "the session has ended") })
	t.Run("a token as a session", func(t *testing.T) {
		s.refused(t, refreshing(s.tokens(t, exchange(s.code(t, "alice", ""))).ID), "the session has ended")
	})
	t.Run("an altered session", func(t *testing.T) {
		s.refused(t, refreshing(session[:len(session)-4]+"AAAA"), "the session has ended")
	})
}

// Nothing is sent anywhere but to the machine of who asks.
func TestARequestThatIsNotAsItShouldBeIsRefused(t *testing.T) {
	s := serve(t)
	for name, tt := range map[string]struct {
		alter []string
		// back tells that the client is told, at its own address.
		back bool
		why  string
	}{
		"another host":                    {[]string{"redirect_uri", "https://evil.example.com/callback"}, false, "redirect_uri"},
		"another host with ours before":   {[]string{"redirect_uri", "http://127.0.0.1@evil.example.com/callback"}, false, "redirect_uri"},
		"another host that begins so":     {[]string{"redirect_uri", "http://localhost.evil.example.com/callback"}, false, "redirect_uri"},
		"another host behind a backslash": {[]string{"redirect_uri", `http://evil.example.com\@127.0.0.1/callback`}, false, "redirect_uri"},
		"another path":                    {[]string{"redirect_uri", "http://127.0.0.1/elsewhere"}, false, "redirect_uri"},
		"a scheme of a program":           {[]string{"redirect_uri", "javascript:alert(1)"}, false, "redirect_uri"},
		"no host":                         {[]string{"redirect_uri", "//evil.example.com/callback"}, false, "redirect_uri"},
		"no address":                      {[]string{"redirect_uri", ""}, false, "redirect_uri"},
		"another client":                  {[]string{"client_id", "other"}, false, "unknown client_id"},
		"no PKCE":                         {[]string{"code_challenge", "", "code_challenge_method", ""}, true, "PKCE is required"},
		"plain PKCE":                      {[]string{"code_challenge_method", "plain"}, true, "code_challenge_method"},
		"PKCE of no method":               {[]string{"code_challenge_method", ""}, true, "PKCE is required"},
		"a token at once":                 {[]string{"response_type", "id_token"}, true, "response type"},
		"an answer in the fragment":       {[]string{"response_mode", "fragment"}, true, "response_mode"},
		"an answer by a form":             {[]string{"response_mode", "form_post"}, true, "response_mode"},
		"no scope":                        {[]string{"scope", ""}, true, "scope"},
		"not openid":                      {[]string{"scope", "offline_access"}, true, "openid"},
		"a request object":                {[]string{"request", "a.b.c"}, true, "request_not_supported"},
		"without asking":                  {[]string{"prompt", "none"}, true, "login_required"},
		"a state without end":             {[]string{"state", strings.Repeat("x", 3000)}, true, "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answered := s.do(t, http.MethodGet, authorizePath, with(authorization(), tt.alter...), nil)
			if !tt.back {
				g.Expect(answered.status).To(BeElementOf(http.StatusBadRequest, http.StatusUnauthorized))
				g.Expect(answered.location.String()).To(BeEmpty())
				g.Expect(answered.body).To(ContainSubstring(tt.why))
				return
			}
			g.Expect(answered.status).To(Equal(http.StatusFound), answered.body)
			g.Expect(answered.location.Host).To(Equal("127.0.0.1:8000"))
			query, err := url.QueryUnescape(answered.location.RawQuery + answered.location.Fragment)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(query).To(ContainSubstring(tt.why))
			g.Expect(query).NotTo(ContainSubstring("code="))
		})
	}
}

// An answer does not tell whether there is such a user.
func TestWhoIsRefusedLearnsNothing(t *testing.T) {
	s := serve(t)
	for name, tt := range map[string]struct{ user, password string }{
		"a wrong password":           {"alice", "not the password"},
		"no password":                {"alice", ""},
		"a user that is not there":   {"mallory", password},
		"a name that cannot be":      {"../alice", password},
		"a name with a line break":   {"alice\n", password},
		"no name":                    {"", password},
		"the stand-in of the absent": {"mallory", "absent"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			answered := s.submit(t, tt.user, tt.password, "a")
			g.Expect(answered.status).To(Equal(http.StatusUnauthorized))
			g.Expect(answered.body).To(Equal(wrong))
		})
	}
	t.Run("who is in no tenant is told so with the right password only", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(s.submit(t, "bob", "not the password", "").body).To(Equal(wrong))
		answered := s.submit(t, "bob", password, "")
		g.Expect(answered.status).To(Equal(http.StatusForbidden))
		g.Expect(answered.body).To(ContainSubstring("you are no member of a tenant"))
	})
}

func TestPasswordsAreTriedSlowly(t *testing.T) {
	for _, name := range []string{"alice", "mallory"} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := serve(t)
			for range attemptsAtOnce {
				g.Expect(s.submit(t, name, "not the password", "").status).To(Equal(http.StatusUnauthorized))
			}
			g.Expect(s.submit(t, name, password, "").status).To(Equal(http.StatusTooManyRequests))
			g.Expect(s.submit(t, "carol", password, "a").status).To(Equal(http.StatusSeeOther), "others sign in")
			s.clock.SetTime(began.Add(attemptEvery))
			g.Expect(s.submit(t, name, "not the password", "").status).To(Equal(http.StatusUnauthorized))
		})
	}
	t.Run("under all names together too", func(t *testing.T) {
		g := NewWithT(t)
		a := newAttempts()
		allowed := 0
		for i := range 1000 {
			if a.allow(string(rune('a'+i%26))+strings.Repeat("x", i%50), began) {
				allowed++
			}
		}
		g.Expect(allowed).To(Equal(allAtOnce))
	})
}

// Names that are tried in vain do not push out the ones whose tries are counted.
func TestManyNamesDoNotMakeOneForgotten(t *testing.T) {
	g := NewWithT(t)
	a := newAttempts()
	for range attemptsAtOnce {
		g.Expect(a.allow("alice", began)).To(BeTrue())
	}
	for i := range 2 * namesKnown {
		a.allow(strconv.Itoa(i), began)
	}
	g.Expect(a.allow("alice", began.Add(time.Second))).To(BeFalse())
}

// What is wrong with the platform is not blamed on the password.
func TestWhoCannotBeLookedUpIsToldSo(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	g.Expect(s.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: users.Namespace, Name: users.Secret}})).To(Succeed())
	answered := s.submit(t, "alice", password, "a")
	g.Expect(answered.status).To(Equal(http.StatusInternalServerError))
	g.Expect(answered.body).To(Equal(wentWrong))
}

// A replica that has not read the keys yet has everybody come again, and says itself that it is not ready.
func TestBeforeTheKeysAreRead(t *testing.T) {
	s := serve(t)
	s.keys.keys = nil
	for path, want := range map[string]int{
		authorizePath: http.StatusServiceUnavailable, signInPath: http.StatusServiceUnavailable, keysPath: http.StatusServiceUnavailable,
		"/ready": http.StatusInternalServerError, "/healthz": http.StatusOK, "/.well-known/openid-configuration": http.StatusOK,
	} {
		NewWithT(t).Expect(s.do(t, http.MethodGet, path, nil, nil).status).To(Equal(want), path)
	}
	NewWithT(t).Expect(s.do(t, http.MethodPost, tokenPath, nil, refreshing("x")).status).To(Equal(http.StatusServiceUnavailable))
}

func TestThePage(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	shown := s.do(t, http.MethodGet, signInPath, url.Values{"request": {s.request(t, "tenant", `"><script>`)}}, nil)
	g.Expect(shown.status).To(Equal(http.StatusOK))
	g.Expect(shown.body).To(ContainSubstring("&#34;&gt;&lt;script&gt;"))
	g.Expect(shown.body).NotTo(ContainSubstring("<script>"))
	g.Expect(shown.header.Get("X-Frame-Options")).To(Equal("DENY"))
	g.Expect(shown.header.Get("Content-Security-Policy")).To(ContainSubstring("default-src 'none'"))
	g.Expect(shown.header).NotTo(HaveKey("Access-Control-Allow-Origin"))
	t.Run("of no request is not shown", func(t *testing.T) {
		for _, request := range []string{"", "a.b.c.d.e", s.code(t, "alice", "")} {
			NewWithT(t).Expect(s.do(t, http.MethodGet, signInPath, url.Values{"request": {request}}, nil).status).To(Equal(http.StatusBadRequest))
		}
	})
	t.Run("of a request that is too old is not shown", func(t *testing.T) {
		request := url.Values{"request": {s.request(t)}}
		s.clock.SetTime(began.Add(requestLife))
		NewWithT(t).Expect(s.do(t, http.MethodGet, signInPath, request, nil).status).To(Equal(http.StatusBadRequest))
	})
}

func TestWhatIsNotOfferedIsNotThere(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"/userinfo", "/oauth/introspect", "/revoke", "/end_session", "/device_authorization", "/authorize/callback", "/"} {
		NewWithT(t).Expect(s.do(t, http.MethodGet, path, nil, nil).status).To(Equal(http.StatusNotFound), path)
	}
	t.Run("tokens by an address that is logged", func(t *testing.T) {
		NewWithT(t).Expect(s.do(t, http.MethodGet, tokenPath, refreshing("x"), nil).status).To(Equal(http.StatusMethodNotAllowed))
		NewWithT(t).Expect(s.do(t, http.MethodPost, tokenPath, refreshing("x"), url.Values{}).status).To(Equal(http.StatusMethodNotAllowed))
	})
}

func TestDiscoverySaysWhatThereIs(t *testing.T) {
	g := NewWithT(t)
	g.Expect(serve(t).do(t, http.MethodGet, "/.well-known/openid-configuration", nil, nil).body).To(MatchJSON(`{
		"issuer": "https://auth.example.com",
		"authorization_endpoint": "https://auth.example.com/authorize",
		"token_endpoint": "https://auth.example.com/token",
		"jwks_uri": "https://auth.example.com/keys",
		"scopes_supported": ["openid", "offline_access"],
		"response_types_supported": ["code"],
		"grant_types_supported": ["authorization_code", "refresh_token"],
		"subject_types_supported": ["public"],
		"id_token_signing_alg_values_supported": ["ES256"],
		"token_endpoint_auth_methods_supported": ["none"],
		"code_challenge_methods_supported": ["S256"],
		"claims_supported": ["sub", "user_type", "tenant_id"],
		"request_uri_parameter_supported": false
	}`))
}

// Not parallel: the log is everybody's.
func TestNothingSecretIsLogged(t *testing.T) {
	g := NewWithT(t)
	var logged bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	s := serve(t)
	code := s.code(t, "alice", "")
	got := s.tokens(t, exchange(code))
	s.refused(t, exchange(code), "has been used")
	s.refused(t, refreshing(got.Refresh+"x"), "ended")
	s.submit(t, "alice", "another secret", "")
	s.do(t, http.MethodGet, authorizePath, with(authorization(), "scope", ""), nil)
	g.Expect(logged.String()).To(ContainSubstring("signed in"))
	g.Expect(logged.String()).To(ContainSubstring("refused to sign in"))
	for _, secret := range []string{code, got.ID, got.Refresh, password, "another secret", verifier} {
		g.Expect(logged.String()).NotTo(ContainSubstring(secret))
	}
}

func TestAProviderThatCannotBeSafeDoesNotStart(t *testing.T) {
	good := Options{Issuer: "https://auth.example.com:8443", Lifetimes: lifetimes}
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for name, alter := range map[string]func(*Options){
		"plain HTTP":                  func(o *Options) { o.Issuer = "http://auth.example.com" },
		"no host":                     func(o *Options) { o.Issuer = "https://" },
		"a path":                      func(o *Options) { o.Issuer = "https://auth.example.com/auth" },
		"a slash at the end":          func(o *Options) { o.Issuer = "https://auth.example.com/" },
		"a user":                      func(o *Options) { o.Issuer = "https://me@auth.example.com" },
		"tokens of a day":             func(o *Options) { o.Lifetimes.Token = 24 * time.Hour },
		"tokens of no time":           func(o *Options) { o.Lifetimes.Token = 0 },
		"sessions shorter than those": func(o *Options) { o.Lifetimes.Session = time.Minute },
		"keys of a minute":            func(o *Options) { o.Lifetimes.Key = time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			alter(&o)
			if err := o.validate(); err == nil {
				t.Error("it starts")
			}
		})
	}
}

func TestReplicasShareTheirKeys(t *testing.T) {
	g := NewWithT(t)
	s := serve(t)
	other := &keyring{client: s.client, clock: s.clock, lifetimes: lifetimes}
	g.Expect(other.reload(t.Context())).To(Succeed())
	g.Expect(ids(other.all())).To(Equal(ids(s.keys.all())))
	t.Run("keys that cannot be read are not replaced", func(t *testing.T) {
		g := NewWithT(t)
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: users.Namespace, Name: KeysSecret}}
		g.Expect(s.client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		secret.Data[keysEntry] = []byte("[]")
		g.Expect(s.client.Update(t.Context(), secret)).To(Succeed())
		g.Expect(other.reload(t.Context())).To(MatchError(ContainSubstring("cannot be read")))
		g.Expect(ids(other.all())).To(Equal(ids(s.keys.all())))
	})
}
