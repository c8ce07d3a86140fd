// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"crypto/tls"
	"net/http"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/test/attacks"
)

// The whole of who may do what: package attacks has it written down.
func TestEveryVerbOnEveryPlaceByEverybody(t *testing.T) {
	t.Parallel()
	for _, tenant := range attacks.Tenants() {
		makeTenant(t, tenant)
	}
	for _, o := range attacks.CloudSpaces() {
		makeCloudSpace(t, o)
	}
	become := attacks.ByImpersonation(adminConfig)
	t.Run("what is served", func(t *testing.T) { attacks.Run(t, adminConfig, become) })
	t.Run("subresources", func(t *testing.T) { attacks.Subresources(t, adminConfig, become) })
}

// A selector, a token to go on with, a header: nothing that is sent widens what is seen.
func TestNothingThatIsSentWidensWhatIsSeen(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "widen-a", member("widen-alice", tenancyv1alpha1.MemberOwner))
	newTenant(t, "widen-b", member("widen-bob", tenancyv1alpha1.MemberOwner))
	newCloudSpace(t, "widen-a", "mine")
	for _, name := range []string{"theirs-1", "theirs-2", "theirs-3"} {
		newCloudSpace(t, "widen-b", name)
	}
	alice, bob := known(t, customer("widen-alice", "widen-a")), known(t, customer("widen-bob", "widen-b"))
	page, err := bob.sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{Limit: 1})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(page.GetContinue()).NotTo(gomega.BeEmpty())
	everything, err := superAdmin().sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{Limit: 1})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for name, options := range map[string]metav1.ListOptions{
		"a label of all others":      {LabelSelector: "kubeopera.io/tenant!=widen-a"},
		"another namespace":          {FieldSelector: "metadata.namespace=tenant-widen-b"},
		"a name of another":          {FieldSelector: "metadata.name=theirs-1"},
		"another's token to go on":   {Limit: 1, Continue: page.GetContinue()},
		"an administrator's, too":    {Limit: 1, Continue: everything.GetContinue()},
		"a state that all are in":    {FieldSelector: "status.state!=deleting"},
		"an old version of the list": {ResourceVersion: "0"},
	} {
		list, err := alice.sees(t, cloudSpaces).List(t.Context(), options)
		if err != nil {
			continue
		}
		for i := range list.Items {
			g.Expect(list.Items[i].GetNamespace()).To(gomega.Equal("tenant-widen-a"), name)
		}
	}
	list, err := alice.sees(t, accounts).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=widen-b"})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(list.Items).To(gomega.BeEmpty())

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		address("/apis/view.kubeopera.io/v1alpha1/namespaces/tenant-widen-b/cloudspaces/theirs-1"), http.NoBody)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	request.Header.Set("X-Remote-User", "kubeopera:widen-bob")
	request.Header.Set("X-Remote-Group", "system:masters")
	request.Header.Set("X-Remote-Extra-Kubeopera.io%2ftenant-Id", "widen-b")
	code, text := answerTo(t, alice, request)
	g.Expect(code).To(gomega.Equal(http.StatusNotFound), "kube-apiserver strips what only it may say: %s", text)
}

// Who reaches a replica itself, past kube-apiserver, is nobody there by their own word.
func TestNobodyComesInByTheSideDoor(t *testing.T) {
	t.Parallel()
	clients, err := newAuthority("clients")
	if err != nil {
		t.Fatal(err)
	}
	for name, certificate := range map[string]struct {
		authority *authority
		name      string
	}{
		"without a certificate":                             {},
		"with a certificate of one's own for a front proxy": {clients, "front-proxy-client"},
		"with a front proxy's certificate that is not let":  {frontProxy, "another-proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			defer transport.CloseIdleConnections()
			if certificate.authority != nil {
				certFile, keyFile, err := certificate.authority.signed(t.TempDir(), certificate.name)
				g.Expect(err).NotTo(gomega.HaveOccurred())
				pair, err := tls.LoadX509KeyPair(certFile, keyFile)
				g.Expect(err).NotTo(gomega.HaveOccurred())
				transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"https://"+replicas[0].address+"/apis/view.kubeopera.io/v1alpha1/cloudspaces", nil)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			request.Header.Set("X-Remote-User", "kubeopera:root")
			request.Header.Set("X-Remote-Group", "system:masters")
			request.Header.Set("Impersonate-User", "kubernetes-admin")
			request.Header.Set("Impersonate-Group", "system:masters")
			answer, err := (&http.Client{Transport: transport}).Do(request)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(answer.Body.Close()).To(gomega.Succeed())
			g.Expect(answer.StatusCode).To(gomega.BeElementOf(http.StatusUnauthorized, http.StatusForbidden))
		})
	}
}
