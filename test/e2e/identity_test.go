//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

const issuer = "https://10.96.0.20"

// person is somebody who signs in with a password of their own, and works with kubectl and its credential plugin.
type person struct{ name, kubeconfig, session, password string }

// plugin is the credential plugin, which also keeps users.
func plugin() string { return filepath.Join(filepath.Dir(os.Getenv("HOSTCLUSTER")), "auth-service") }

// runAs runs a command with somebody's kubeconfig.
func runAs(t *testing.T, kubeconfig, command string, args ...string) (string, error) {
	t.Helper()
	made := exec.CommandContext(t.Context(), command, args...)
	made.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := made.CombinedOutput()
	return string(out), err
}

// addUser has whoever the kubeconfig is for make a user.
func addUser(t *testing.T, kubeconfig, name string, flags ...string) *person {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	p := &person{
		name: name, kubeconfig: filepath.Join(folder, "kubeconfig"), session: filepath.Join(folder, "session"), password: filepath.Join(folder, "password"),
	}
	g.Expect(os.WriteFile(p.password, []byte(rand.Text()+"\n"), 0o600)).To(Succeed())
	out, err := runAs(t, kubeconfig, plugin(), append([]string{"user", "add", name, "--password-file", p.password}, flags...)...)
	g.Expect(err).NotTo(HaveOccurred(), out)
	return p
}

// signIn begins a session, and writes a kubeconfig that uses it.
func (h *host) signIn(t *testing.T, p *person) {
	t.Helper()
	g := NewWithT(t)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	g.Expect(os.WriteFile(authority, h.config.CAData, 0o600)).To(Succeed())
	out, err := runAs(t, "", plugin(), "login", "--issuer", issuer, "--connect-to", strings.TrimPrefix(h.config.Host, "https://"),
		"--tls-server-name", "auth-service.kubeopera-core.svc", "--certificate-authority", authority,
		"--user", p.name, "--password-file", p.password, "--session", p.session)
	g.Expect(err).NotTo(HaveOccurred(), out)
	config := api.NewConfig()
	config.Clusters["host"] = &api.Cluster{Server: h.config.Host, CertificateAuthorityData: h.config.CAData}
	config.AuthInfos[p.name] = &api.AuthInfo{Exec: &api.ExecConfig{
		APIVersion: "client.authentication.k8s.io/v1", Command: plugin(), Args: []string{"credential", "--session", p.session},
		InteractiveMode: api.NeverExecInteractiveMode,
	}}
	config.Contexts["host"] = &api.Context{Cluster: "host", AuthInfo: p.name}
	config.CurrentContext = "host"
	g.Expect(clientcmd.WriteToFile(*config, p.kubeconfig)).To(Succeed())
}

func (p *person) kubectl(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return runAs(t, p.kubeconfig, "kubectl", args...)
}

// whoAmI is who kubectl is taken for.
func (p *person) whoAmI(t *testing.T) authenticationv1.UserInfo {
	t.Helper()
	g := NewWithT(t)
	out, err := p.kubectl(t, "auth", "whoami", "-o", "json")
	g.Expect(err).NotTo(HaveOccurred(), out)
	var review authenticationv1.SelfSubjectReview
	g.Expect(json.Unmarshal([]byte(out), &review)).To(Succeed())
	return review.Status.UserInfo
}

// identities: people sign in with the platform's own provider, and are who their Tenants say.
func (h *host) identities(t *testing.T) {
	for _, id := range []string{"judy-default", "kim-default"} {
		h.createIdleTenant(t, ownedBy(id, strings.TrimSuffix(id, "-default")))
	}
	admin := os.Getenv("KUBECONFIG")
	judy, kim, root := addUser(t, admin, "judy"), addUser(t, admin, "kim"), addUser(t, admin, "e2e-root", "--super-admin")
	h.signIn(t, judy)
	h.signIn(t, kim)
	h.signIn(t, root)
	t.Cleanup(func() {
		for _, name := range []string{"judy", "kim", "e2e-root", "e2e-second"} {
			if out, err := exec.CommandContext(context.WithoutCancel(t.Context()), plugin(), "user", "remove", name).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	})

	t.Run("a customer is who the contract says", func(t *testing.T) { whoACustomerIs(t, judy) })
	t.Run("a customer sees what is theirs, and nothing of others", func(t *testing.T) { whatCustomersSee(t, judy, kim) })
	t.Run("the view shows each their own", func(t *testing.T) { h.viewOfTheirOwn(t, judy, kim) })
	t.Run("without the view all but namespaces goes on", h.viewStopped)
	t.Run("an administrator makes another", func(t *testing.T) { h.administratorsMakeAdministrators(t, root) })
	t.Run("a token that breaks the contract is refused, whoever signed it", h.tokensThatBreakTheContract)
	t.Run("who is a member no more gets no token", func(t *testing.T) { h.memberNoMore(t, kim) })
	h.removeTenants(t, "judy-default", "kim-default")
}

// ownedBy is a Tenant with one member, its Owner.
func ownedBy(id, name string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: id},
		Spec:       v1alpha1.TenantSpec{Members: []v1alpha1.Member{{Kind: v1alpha1.MemberUser, Name: "kubeopera:" + name, Role: v1alpha1.MemberOwner}}},
	}
}

// createIdleTenant makes a Tenant for which nothing has to run.
func (h *host) createIdleTenant(t *testing.T, tenant *v1alpha1.Tenant) {
	t.Helper()
	tenant.Spec.DefaultCloudSpace.Template.Spec.Suspend = true
	NewWithT(t).Expect(h.Create(t.Context(), tenant)).To(Succeed())
	h.awaitSuspended(t, client.ObjectKey{Namespace: "tenant-" + tenant.Name, Name: "default"})
}

func (h *host) awaitSuspended(t *testing.T, key client.ObjectKey) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		var cloudSpace v1alpha1.CloudSpace
		g.Expect(h.Get(t.Context(), key, &cloudSpace)).To(Succeed())
		g.Expect(cloudSpace.Status.Phase).To(Equal(v1alpha1.CloudSpaceSuspended))
	}, short, interval).Should(Succeed())
}

func whoACustomerIs(t *testing.T, judy *person) {
	t.Helper()
	g := NewWithT(t)
	before := time.Now()
	is := judy.whoAmI(t)
	g.Expect(is.Username).To(Equal("kubeopera:judy"))
	g.Expect(is.Groups).To(Equal([]string{"kubeopera:customers", "kubeopera:tenant:judy-default", "system:authenticated"}))
	g.Expect(is.Extra).To(HaveKeyWithValue("kubeopera.io/user-type", authenticationv1.ExtraValue{"customer"}))
	g.Expect(is.Extra).To(HaveKeyWithValue("kubeopera.io/tenant-id", authenticationv1.ExtraValue{"judy-default"}))
	g.Expect(is.Extra["kubeopera.io/token-expires"]).To(HaveLen(1))
	expires, err := strconv.ParseInt(is.Extra["kubeopera.io/token-expires"][0], 10, 64)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(time.Unix(expires, 0)).To(And(BeTemporally(">", before), BeTemporally("<=", time.Now().Add(time.Hour))))
}

func whatCustomersSee(t *testing.T, judy, kim *person) {
	t.Helper()
	g := NewWithT(t)
	const stored = "cloudspaces.tenancy.kubeopera.io"
	// The role is bound a moment after the Tenant is made.
	g.Eventually(func() (string, error) {
		return judy.kubectl(t, "get", "cloudspace/default", "-n", "tenant-judy-default", "-o", "name")
	}, short, interval).Should(Equal("cloudspace.view.kubeopera.io/default\n"))
	for words, attempts := range map[string][][]string{
		"not found": {{"get", "cloudspace/default", "-n", "tenant-judy-default"}},
		"Forbidden": {
			{"get", "cloudspaces", "-n", "tenant-judy-default"},
			{"delete", "cloudspace/default", "-n", "tenant-judy-default"},
			{"get", stored, "-n", "tenant-judy-default"},
			{"get", stored, "-n", "tenant-kim-default"},
			{"get", stored, "-A"},
			{"get", "tenants"},
			{"get", "secrets", "-n", "kubeopera-core"},
			{"get", "cloudspace/default", "-n", "tenant-judy-default", "--as", "kubeopera:judy"},
		},
	} {
		for _, attempt := range attempts {
			out, err := kim.kubectl(t, attempt...)
			g.Expect(err).To(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring(words))
		}
	}
}

func (h *host) administratorsMakeAdministrators(t *testing.T, root *person) {
	t.Helper()
	g := NewWithT(t)
	second := addUser(t, root.kubeconfig, "e2e-second", "--super-admin")
	h.signIn(t, second)
	is := second.whoAmI(t)
	g.Expect(is.Groups).To(Equal([]string{"kubeopera:super-admins", "system:authenticated"}))
	g.Expect(is.Extra).NotTo(HaveKey("kubeopera.io/tenant-id"))
	out, err := second.kubectl(t, "get", "tenants", "judy-default", "-o", "name")
	g.Expect(err).NotTo(HaveOccurred(), out)
	out, err = second.kubectl(t, "get", "secret", "auth-service-keys", "-n", "kubeopera-core")
	g.Expect(err).To(HaveOccurred(), out)
}

// tokensThatBreakTheContract signs tokens with the provider's own key, which a provider that errs, or another one, might do.
func (h *host) tokensThatBreakTheContract(t *testing.T) {
	g := NewWithT(t)
	provider := h.provider(t)
	ask := func(altered map[string]any) error {
		all := map[string]any{"sub": "mallory", "user_type": "customer", "tenant_id": "judy-default"}
		maps.Copy(all, altered)
		bearer, err := kubernetes.NewForConfig(h.with(provider.token(t, all)))
		g.Expect(err).NotTo(HaveOccurred())
		_, err = bearer.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		return err
	}
	g.Expect(ask(nil)).To(Succeed(), "the one that is altered here is refused itself")
	for name, altered := range map[string]map[string]any{
		"two tenants":                      {"tenant_id": []string{"judy-default", "kim-default"}},
		"no tenant":                        {"tenant_id": nil},
		"an administrator with a tenant":   {"user_type": "super_admin"},
		"another user type":                {"user_type": "admin", "tenant_id": nil},
		"the masters of the system":        {"groups": []string{"system:masters"}},
		"a user of the system":             {"sub": "system:admin"},
		"another audience":                 {"aud": "other"},
		"another issuer":                   {"iss": "https://other.example.com"},
		"one that has expired":             {"exp": time.Now().Add(-time.Minute).Unix()},
		"one that never expires":           {"exp": nil},
		"an address that nobody looked at": {"email": "mallory@example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ask(altered)
			NewWithT(t).Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "%v", err)
		})
	}
}

func (h *host) memberNoMore(t *testing.T, kim *person) {
	t.Helper()
	g := NewWithT(t)
	var tenant v1alpha1.Tenant
	g.Expect(h.Get(t.Context(), client.ObjectKey{Name: "kim-default"}, &tenant)).To(Succeed())
	before := tenant.DeepCopy()
	tenant.Spec.Members = nil
	g.Expect(h.Patch(t.Context(), &tenant, client.MergeFrom(before))).To(Succeed())
	out, err := kim.kubectl(t, "auth", "whoami")
	g.Expect(err).To(HaveOccurred(), out)
	g.Expect(out).To(ContainSubstring("you are no member of a tenant"))
}
