//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/internal/signin"
	"github.com/tantilium/cloud-runner/internal/users"
)

// secretsAreNowhereElse looks for what nobody may read in all that people read: objects of every kind but Secrets, with their statuses and
// annotations, Events, logs and metrics. That each is found where it belongs shows that it would be found elsewhere.
func (h *host) secretsAreNowhereElse(t *testing.T) {
	g := NewWithT(t)
	name := strings.ToLower(rand.Text())
	person := addUser(t, os.Getenv("KUBECONFIG"), name, "--super-admin")
	t.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), plugin(), "user", "remove", name).Run()
	})
	h.signIn(t, person)
	out, err := person.kubectl(t, "get", "cloudspaces", "-A")
	g.Expect(err).NotTo(HaveOccurred(), out)

	stored, known := h.storedSecrets(t, name), person.secrets(t)
	inSecrets := stored.in(h.listed(t, corev1.SchemeGroupVersion.WithResource("secrets")))
	for what := range stored {
		g.Expect(inSecrets).To(ContainElement(what), "it is not found in the Secret that has it")
	}
	sought := maps.Clone(stored)
	maps.Copy(sought, known)
	h.notInObjects(t, sought)
	h.notInLogs(t, sought, name)
	h.notInMetrics(t, sought)
}

// secrets are texts that nobody may read, each by what it is, in all ways that it may be spelled.
type secrets map[string][]string

// in tells which are in a text.
func (s secrets) in(text string) []string {
	var found []string
	for what, spellings := range s {
		if slices.ContainsFunc(spellings, func(spelling string) bool { return strings.Contains(text, spelling) }) {
			found = append(found, what)
		}
	}
	return found
}

// spelled is a text as it is, within what is in base64, as in a kubeconfig, and within what is twice, as a kubeconfig in a Secret.
func spelled(text string) []string {
	all, last := []string{text}, []string{text}
	for range 2 {
		var next []string
		for _, each := range last {
			// It may begin at any of the three bytes that four letters stand for.
			for skip := range 3 {
				whole := each[skip:]
				next = append(next, base64.StdEncoding.EncodeToString([]byte(whole[:len(whole)/3*3])))
			}
		}
		all, last = append(all, next...), next
	}
	return all
}

// storedSecrets are what opens a CloudSpace, what the provider signs and seals with, and what a password is compared with.
func (h *host) storedSecrets(t *testing.T, user string) secrets {
	t.Helper()
	g := NewWithT(t)
	all := secrets{}
	for i, line := range h.credentials(t) {
		all[fmt.Sprintf("line %d of the key of a kubeconfig", i+1)] = spelled(line)
	}
	var keys []struct {
		Signing struct{ D string }
		Sealing json.RawMessage
	}
	g.Expect(json.Unmarshal(h.providersKeys(t), &keys)).To(Succeed())
	for i, key := range keys {
		all[fmt.Sprintf("key %d to sign with", i+1)] = spelled(key.Signing.D)
		all[fmt.Sprintf("key %d to seal with", i+1)] = spelled(string(key.Sealing))
	}
	var secret corev1.Secret
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: users.Namespace, Name: users.Secret}, &secret)).To(Succeed())
	var kept users.User
	g.Expect(json.Unmarshal(secret.Data[user], &kept)).To(Succeed())
	all["the hash of a password"] = spelled(kept.PasswordHash)
	for what, spellings := range all {
		g.Expect(len(spellings[0])).To(BeNumerically(">", 20), what)
	}
	return all
}

// secrets are what somebody signs in with, and is known by then. They are stored nowhere on the cluster.
func (p *person) secrets(t *testing.T) secrets {
	t.Helper()
	g := NewWithT(t)
	password, err := os.ReadFile(p.password)
	g.Expect(err).NotTo(HaveOccurred())
	session, err := signin.Load(p.session)
	g.Expect(err).NotTo(HaveOccurred())
	credential, err := session.Credential(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	token := credential.Status.Token
	all := secrets{
		"a password": spelled(strings.TrimSpace(string(password))), "a refresh token": spelled(session.RefreshToken),
		"the signature of a token": spelled(token[strings.LastIndex(token, ".")+1:]),
	}
	text := fmt.Sprintf("%s %s %s", password, session.RefreshToken, token)
	g.Expect(all.in(text)).To(HaveLen(len(all)))
	g.Expect(all.in(base64.StdEncoding.EncodeToString([]byte(text)))).To(HaveLen(len(all)))
	return all
}

// notInObjects looks through all that can be listed, but Secrets.
func (h *host) notInObjects(t *testing.T, sought secrets) {
	t.Helper()
	g := NewWithT(t)
	client, err := discovery.NewDiscoveryClientForConfig(h.config)
	g.Expect(err).NotTo(HaveOccurred())
	served, err := client.ServerPreferredResources()
	g.Expect(err).NotTo(HaveOccurred())
	var looked []string
	for _, group := range served {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		g.Expect(err).NotTo(HaveOccurred())
		for i := range group.APIResources {
			resource := version.WithResource(group.APIResources[i].Name)
			if !slices.Contains(group.APIResources[i].Verbs, "list") || resource.GroupResource() == corev1.Resource("secrets") {
				continue
			}
			looked = append(looked, resource.GroupResource().String())
			g.Expect(sought.in(h.listed(t, resource))).To(BeEmpty(), resource.String())
		}
	}
	g.Expect(looked).To(ContainElements("tenants.tenancy.kubeopera.io", "cloudspaces.tenancy.kubeopera.io", "tenantquotas.tenancy.kubeopera.io",
		"cloudspaces.view.kubeopera.io", "accounts.view.kubeopera.io", "events", "events.events.k8s.io", "configmaps", "pods", "namespaces",
		"helmreleases.helm.toolkit.fluxcd.io", "kustomizations.kustomize.toolkit.fluxcd.io"))
}

// listed is all there is of a resource, in all namespaces, as an administrator reads it.
func (h *host) listed(t *testing.T, resource schema.GroupVersionResource) string {
	t.Helper()
	g := NewWithT(t)
	client, err := dynamic.NewForConfig(h.config)
	g.Expect(err).NotTo(HaveOccurred())
	list, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred(), resource.String())
	text, err := json.Marshal(list)
	g.Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// notInLogs looks through the logs of the platform and of Flux. What is known to be logged must be found.
func (h *host) notInLogs(t *testing.T, sought secrets, logged string) {
	t.Helper()
	g := NewWithT(t)
	found := false
	for _, namespace := range []string{"kubeopera-system", "kubeopera-core", "flux-system"} {
		var pods corev1.PodList
		g.Expect(h.WithWatch.List(t.Context(), &pods, client.InNamespace(namespace))).To(Succeed())
		g.Expect(pods.Items).NotTo(BeEmpty(), namespace)
		for _, pod := range pods.Items {
			for where, text := range h.logsOf(t, &pod) {
				g.Expect(sought.in(text)).To(BeEmpty(), where)
				found = found || strings.Contains(text, logged)
			}
		}
	}
	g.Expect(found).To(BeTrue(), "who signed in is in a log")
}

// logsOf gives the logs of each container of a pod, and of the one before it where it was started again.
func (h *host) logsOf(t *testing.T, pod *corev1.Pod) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, container := range pod.Status.ContainerStatuses {
		for _, previous := range []bool{false, true} {
			if previous && container.RestartCount == 0 {
				continue
			}
			text, err := h.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, Previous: previous}).DoRaw(t.Context())
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			all[fmt.Sprintf("%s/%s %s, previous: %t", pod.Namespace, pod.Name, container.Name, previous)] = string(text)
		}
	}
	return all
}

// notInMetrics looks through what the operator and the view measure.
func (h *host) notInMetrics(t *testing.T, sought secrets) {
	t.Helper()
	g := NewWithT(t)
	token := h.monitoringToken(t)
	operator := h.scrape(t, h.podNamed(t, "kubeopera-system", "tenant-controller"), 8443, token)
	view := h.scrape(t, h.podNamed(t, "kubeopera-core", "kubeopera-api"), 6443, token)
	g.Expect(operator).To(ContainSubstring("kubeopera_cloudspace_phase"))
	g.Expect(view).To(ContainSubstring("apiserver_request_total"))
	g.Expect(sought.in(operator + view)).To(BeEmpty())
}
