//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// certificatesRenewed makes the vCluster renew its certificates, as it does by itself when they are about to expire: it begins so
// when it starts and one is missing.
func (h *host) certificatesRenewed(t *testing.T) {
	g := NewWithT(t)
	written := client.ObjectKey{Namespace: "vcluster-alice-default", Name: "vc-alice-default"}
	before := h.kubeconfigIn(t, g, written, "config")
	var certificates corev1.Secret
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: written.Namespace, Name: "alice-default-certs"}, &certificates)).To(Succeed())
	g.Expect(certificates.Data).To(HaveKey("apiserver.crt"))
	delete(certificates.Data, "apiserver.crt")
	g.Expect(h.Update(t.Context(), &certificates)).To(Succeed())
	h.killPods(t, client.InNamespace(written.Namespace), client.MatchingLabels{"app": "vcluster", "release": "alice-default"})
	g.Eventually(func(g Gomega) {
		g.Expect(certificateIn(h.kubeconfigIn(t, g, written, "config"))).NotTo(Equal(certificateIn(before)))
	}, removal, interval).Should(Succeed(), "the vCluster renews its own kubeconfig")

	for _, name := range []string{"cloudspace-alice-default-kubeconfig", "tenant-alice-default-kubeconfig"} {
		for _, key := range []string{"config", "value"} {
			g.Eventually(func(g Gomega) {
				ours := h.kubeconfigIn(t, g, client.ObjectKey{Namespace: "kubeopera-system", Name: name}, key)
				g.Expect(certificateIn(ours)).To(Equal(certificateIn(h.kubeconfigIn(t, g, written, "config"))))
			}, short, interval).Should(Succeed(), "%s follows", name)
		}
	}
	h.waitForCloudSpace(t, "tenant-alice-default", "default")
	g.Eventually(func() error {
		return openCloudSpace(t, "alice-default").WithWatch.List(t.Context(), &corev1.NamespaceList{})
	}, short, interval).Should(Succeed(), "the renewed kubeconfig works")
}

func (h *host) kubeconfigIn(t *testing.T, g Gomega, secret client.ObjectKey, key string) *clientcmdapi.Config {
	t.Helper()
	var found corev1.Secret
	g.Expect(h.Get(t.Context(), secret, &found)).To(Succeed())
	config, err := clientcmd.Load(found.Data[key])
	g.Expect(err).NotTo(HaveOccurred())
	return config
}

// certificateIn is the client certificate of a kubeconfig with one user.
func certificateIn(config *clientcmdapi.Config) string {
	for _, user := range config.AuthInfos {
		return string(user.ClientCertificateData)
	}
	return ""
}

// authorityIn is the certificate authority of a kubeconfig with one cluster.
func authorityIn(config *clientcmdapi.Config) string {
	for _, cluster := range config.Clusters {
		return string(cluster.CertificateAuthorityData)
	}
	return ""
}
