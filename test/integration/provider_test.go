// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/controllers"
	"github.com/tantilium/cloud-runner/internal/authservice"
	"github.com/tantilium/cloud-runner/internal/authservice/authservicetest"
	"github.com/tantilium/cloud-runner/internal/signin"
	"github.com/tantilium/cloud-runner/internal/users"
)

// ownProvider is the platform's OpenID provider, with the rights that config/auth gives it.
type ownProvider struct {
	*authservicetest.Server

	config *rest.Config
}

func listenAsProvider(ctx context.Context, folder string) (*ownProvider, error) {
	server, err := authservicetest.Listen(ctx, folder)
	return &ownProvider{Server: server}, err
}

func (p *ownProvider) start(ctx context.Context, environment *envtest.Environment) (chan error, error) {
	account, err := environment.AddUser(envtest.User{
		Name: "system:serviceaccount:kubeopera-core:auth-service", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kubeopera-core"},
	}, adminConfig)
	if err != nil {
		return nil, err
	}
	p.config = account.Config()
	live, err := client.New(p.config, client.Options{Scheme: controllers.Scheme()})
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		done <- p.Serve(ctx, authservice.Options{
			Client: live, Clock: clock.RealClock{}, Lifetimes: authservice.Lifetimes{Token: 10 * time.Minute, Session: 3 * time.Hour, Key: time.Hour},
		})
	}()
	return done, nil
}

// addUser has somebody with rights make a user, and gives the user's password.
func addUser(t *testing.T, by client.Client, name string, superAdmin bool) string {
	t.Helper()
	g := NewWithT(t)
	password := rand.Text()
	user, err := users.New(password, superAdmin)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(users.Store{Client: by}.Put(t.Context(), name, user)).To(Succeed())
	return password
}

func (p *ownProvider) signIn(t *testing.T, name, password string) signin.Session {
	t.Helper()
	session, err := signin.Provider{Issuer: p.Issuer, CertificateAuthority: p.Authority}.SignIn(t.Context(), signin.Login{User: name, Password: password})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return session
}

func tokenOf(t *testing.T, session signin.Session) string {
	t.Helper()
	credential, err := session.Credential(t.Context())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return credential.Status.Token
}

func keyOf(t *testing.T, token string) string {
	t.Helper()
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return parsed.Headers[0].KeyID
}

// olderKeys makes the provider's keys older, and tells how many there are.
func olderKeys(t *testing.T, by time.Duration) int {
	t.Helper()
	g := NewWithT(t)
	stored := secret("kubeopera-core", authservice.KeysSecret)
	g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(stored), stored)).To(Succeed())
	var keys []map[string]any
	g.Expect(json.Unmarshal(stored.Data["keys.json"], &keys)).To(Succeed())
	for _, key := range keys {
		created, err := time.Parse(time.RFC3339Nano, key["created"].(string))
		g.Expect(err).NotTo(HaveOccurred())
		key["created"] = created.Add(-by)
	}
	if by > 0 {
		text, err := json.Marshal(keys)
		g.Expect(err).NotTo(HaveOccurred())
		stored.Data["keys.json"] = text
		g.Expect(admin.Update(t.Context(), stored)).To(Succeed())
	}
	return len(keys)
}

// The parts follow one another.
func TestThePlatformsOwnProvider(t *testing.T) {
	t.Parallel()
	made := create(t, tenant("provided", func(o *v1alpha1.Tenant) {
		o.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "kubeopera:nora", Role: "Viewer"}}
	}))
	password := addUser(t, admin, "nora", false)
	nora := provider.signIn(t, "nora", password)
	token := tokenOf(t, nora)

	t.Run("kube-apiserver takes its tokens", func(t *testing.T) {
		var got authenticationv1.UserInfo
		eventually(t, func(g Gomega) {
			var err error
			got, err = whoIs(t, token)
			g.Expect(err).NotTo(HaveOccurred())
		})
		g := NewWithT(t)
		g.Expect(got.Extra["authentication.kubernetes.io/credential-id"]).To(HaveLen(1))
		delete(got.Extra, "authentication.kubernetes.io/credential-id")
		expires, err := strconv.ParseInt(got.Extra["kubeopera.io/token-expires"][0], 10, 64)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(time.Unix(expires, 0)).To(BeTemporally("~", time.Now().Add(10*time.Minute), 2*time.Minute))
		delete(got.Extra, "kubeopera.io/token-expires")
		want := authenticationv1.UserInfo{
			Username: "kubeopera:nora", Groups: []string{"kubeopera:customers", "kubeopera:tenant:provided", "system:authenticated"},
			Extra: map[string]authenticationv1.ExtraValue{"kubeopera.io/user-type": {"customer"}, "kubeopera.io/tenant-id": {"provided"}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("who it is (-want +got):\n%s", diff)
		}
	})
	t.Run("one administrator makes another, and reads no other Secret", func(t *testing.T) {
		g := NewWithT(t)
		root := provider.signIn(t, "olga", addUser(t, admin, "olga", true))
		asRoot, err := client.New(bearing(tokenOf(t, root)), client.Options{Scheme: controllers.Scheme()})
		g.Expect(err).NotTo(HaveOccurred())
		second := provider.signIn(t, "petra", addUser(t, asRoot, "petra", true))
		is, err := whoIs(t, tokenOf(t, second))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(is.Groups).To(Equal([]string{"kubeopera:super-admins", "system:authenticated"}))
		keys := secret("kubeopera-core", authservice.KeysSecret)
		g.Expect(apierrors.IsForbidden(asRoot.Get(t.Context(), client.ObjectKeyFromObject(keys), keys))).To(BeTrue())
		asNora, err := client.New(bearing(token), client.Options{Scheme: controllers.Scheme()})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(apierrors.IsForbidden(users.Store{Client: asNora}.Put(t.Context(), "nora", users.User{SuperAdmin: true}))).To(BeTrue())
	})
	t.Run("a new key is taken, and tokens of the one before go on", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(olderKeys(t, time.Hour)).To(Equal(1))
		eventually(t, func(g Gomega) { g.Expect(olderKeys(t, 0)).To(Equal(2)) })
		g.Expect(keyOf(t, tokenOf(t, nora))).To(Equal(keyOf(t, token)), "it has only been published")
		olderKeys(t, 3*time.Minute)
		eventually(t, func(g Gomega) { g.Expect(keyOf(t, tokenOf(t, nora))).NotTo(Equal(keyOf(t, token))) })
		_, err := whoIs(t, tokenOf(t, nora))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = whoIs(t, token)
		g.Expect(err).NotTo(HaveOccurred())
	})
	t.Run("who is a member no more gets no token", func(t *testing.T) {
		g := NewWithT(t)
		eventually(t, func(g Gomega) {
			g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(made), made)).To(Succeed())
			made.Spec.Members = nil
			g.Expect(admin.Update(t.Context(), made)).To(Succeed())
		})
		_, err := nora.Credential(t.Context())
		g.Expect(err).To(MatchError(ContainSubstring("you are no member of a tenant")))
	})
	remove(t, made)
}

func TestWhatTheProviderMayDo(t *testing.T) {
	t.Parallel()
	want := []string{
		"create authentication.k8s.io/selfsubjectreviews",
		"create authorization.k8s.io/selfsubjectaccessreviews", "create authorization.k8s.io/selfsubjectrulesreviews",
		"get /secrets auth-service-users", "get,list tenancy.kubeopera.io/tenants",
		// Every ServiceAccount may ask the view, which shows it nothing unless it is a member.
		"get,list,watch view.kubeopera.io/accounts", "get,list,watch view.kubeopera.io/cloudspaces", "get,update /secrets auth-service-keys",
	}
	if diff := cmp.Diff(want, rights(t, provider.config, "kubeopera-core")); diff != "" {
		t.Errorf("rights (-want +got):\n%s", diff)
	}
}
