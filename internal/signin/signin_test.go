// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	. "github.com/onsi/gomega"
	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/authservice"
	"github.com/tantilium/cloud-runner/internal/authservice/authservicetest"
	"github.com/tantilium/cloud-runner/internal/users"
)

const password = "correct horse battery"

// start serves a provider for carol, a member of the tenants a and b.
func start(t *testing.T) (Provider, client.Client) {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	g.Expect(err).NotTo(HaveOccurred())
	carol, err := json.Marshal(users.User{PasswordHash: string(hash)})
	g.Expect(err).NotTo(HaveOccurred())
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: users.Namespace, Name: users.Secret}, Data: map[string][]byte{"carol": carol}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: users.Namespace, Name: authservice.KeysSecret}},
	}
	for _, id := range []string{"a", "b"} {
		objects = append(objects, &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: v1alpha1.TenantSpec{
			Members: []v1alpha1.Member{{Kind: v1alpha1.MemberUser, Name: "kubeopera:carol"}},
		}})
	}
	kubernetes := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	server, err := authservicetest.Listen(t.Context(), t.TempDir())
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() {
		done <- server.Serve(ctx, authservice.Options{
			Client: kubernetes, Clock: clock.RealClock{}, Lifetimes: authservice.Lifetimes{Token: time.Minute, Session: time.Hour, Key: time.Hour},
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	provider := Provider{Issuer: server.Issuer, CertificateAuthority: server.Authority}
	asking, err := provider.httpClient()
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func(g Gomega) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.Issuer+"/ready", nil)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := asking.Do(request)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(response.Body.Close()).To(Succeed())
		g.Expect(response.StatusCode).To(Equal(200))
	}).WithTimeout(30 * time.Second).Should(Succeed())
	return provider, kubernetes
}

func TestASessionGivesTokensUntilItsUserIsNoMember(t *testing.T) {
	g := NewWithT(t)
	provider, kubernetes := start(t)
	session, err := provider.SignIn(t.Context(), Login{User: "carol", Password: password, Tenant: "b"})
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "folder", "session.json")
	g.Expect(session.Save(file)).To(Succeed())
	g.Expect(session.Save(file)).To(Succeed(), "in place of the one before")
	kept, err := os.Stat(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(kept.Mode().Perm()).To(Equal(os.FileMode(0o600)))

	loaded, err := Load(file)
	g.Expect(err).NotTo(HaveOccurred())
	credential, err := loaded.Credential(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(credential.APIVersion).To(Equal("client.authentication.k8s.io/v1"))
	g.Expect(credential.Kind).To(Equal("ExecCredential"))
	g.Expect(credential.Status.ExpirationTimestamp.Time).To(BeTemporally("~", time.Now().Add(time.Minute), 30*time.Second))
	token, err := jwt.ParseSigned(credential.Status.Token, []jose.SignatureAlgorithm{jose.ES256})
	g.Expect(err).NotTo(HaveOccurred())
	var said map[string]any
	g.Expect(token.UnsafeClaimsWithoutVerification(&said)).To(Succeed())
	g.Expect(said).To(And(HaveKeyWithValue("sub", "carol"), HaveKeyWithValue("tenant_id", "b")))

	g.Expect(kubernetes.Delete(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "b"}})).To(Succeed())
	_, err = loaded.Credential(t.Context())
	g.Expect(err).To(MatchError("you are no member of that tenant; yours: a"))
}

func TestWhoCannotSignInIsToldWhy(t *testing.T) {
	provider, _ := start(t)
	for name, tt := range map[string]struct {
		provider Provider
		login    Login
		want     string
	}{
		"a wrong password":           {provider, Login{User: "carol", Password: "not the password", Tenant: "a"}, "name or password is wrong"},
		"no choice of a tenant":      {provider, Login{User: "carol", Password: password}, "you are a member of several tenants, choose one: a, b"},
		"plain HTTP":                 {Provider{Issuer: "http://127.0.0.1:1"}, Login{}, "only https is spoken"},
		"an authority that is empty": {Provider{Issuer: provider.Issuer, CertificateAuthority: "none"}, Login{}, "no certificate in it"},
		"another authority":          {Provider{Issuer: provider.Issuer}, Login{}, "certificate"},
		"another name": {
			Provider{Issuer: provider.Issuer, CertificateAuthority: provider.CertificateAuthority, TLSServerName: "other.example.com"}, Login{}, "other.example.com",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tt.provider.SignIn(t.Context(), tt.login)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(tt.want)))
		})
	}
}

func TestAnIssuerIsReachedAtAnotherAddress(t *testing.T) {
	g := NewWithT(t)
	provider, _ := start(t)
	address, err := url.Parse(provider.Issuer)
	g.Expect(err).NotTo(HaveOccurred())
	provider.ConnectTo, provider.TLSServerName = address.Host, "auth.example.com"
	_, err = provider.SignIn(t.Context(), Login{User: "carol", Password: password, Tenant: "a"})
	g.Expect(err).NotTo(HaveOccurred())
}

// A provider that has people sign in elsewhere does not get their password there.
func TestAPasswordGoesToTheIssuerAlone(t *testing.T) {
	g := NewWithT(t)
	asked := false
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(elsewhere.Close)
	var issuer *httptest.Server
	issuer = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/authorize" {
			http.Redirect(w, r, elsewhere.URL+"/sign-in?request=x", http.StatusFound)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": issuer.URL, "authorization_endpoint": issuer.URL + "/authorize"})
	}))
	t.Cleanup(issuer.Close)
	_, err := Provider{Issuer: issuer.URL, CertificateAuthority: pemOf(issuer)}.SignIn(t.Context(), Login{User: "carol", Password: password})
	g.Expect(err).To(MatchError(ContainSubstring("the password is not sent there")))
	g.Expect(asked).To(BeFalse())
}

func TestWhatIsNoSessionIsNotTaken(t *testing.T) {
	for name, text := range map[string]string{"no JSON": "secret!", "another file": "{}", "empty": ""} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "session.json")
			g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
			_, err := Load(file)
			g.Expect(err).To(MatchError(file + " is no session: sign in again"))
		})
	}
	_, err := Load(filepath.Join(t.TempDir(), "nothing"))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("sign in first")))
}

func pemOf(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}
