//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metrics reads the operator's metrics as a monitoring system does: from a pod, with a token that may.
func (h *host) metrics(t *testing.T) {
	g := NewWithT(t)
	operator := h.podNamed(t, "kubeopera-system", "tenant-controller")
	scrape := h.scrape(t, operator, 8443, h.monitoringToken(t))

	for _, line := range []string{
		`kubeopera_tenant_phase{phase="Ready",tenant="alice-default"} 1`,
		`kubeopera_cloudspace_phase{cloudspace="staging",phase="Active",tenant="alice-default"} 1`,
		`kubeopera_cloudspace_kubeconfig_expiry_timestamp_seconds{cloudspace="default",tenant="bob-default"} `,
		`kubeopera_cloudspace_step_duration_seconds_count{step="ControlPlaneReady"} `,
		`kubeopera_cloudspace_provisioning_duration_seconds_count `,
	} {
		g.Expect(scrape).To(ContainSubstring(line))
	}
	g.Expect(h.scrape(t, operator, 8443, "")).NotTo(ContainSubstring("kubeopera_"), "metrics must not be served without a token")
}

// monitoringToken is one that may read metrics.
func (h *host) monitoringToken(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "monitoring", Namespace: "default"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-monitoring"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tenant-controller-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: account.Namespace}},
	}
	for _, object := range []client.Object{account, binding} {
		g.Expect(client.IgnoreAlreadyExists(h.Create(t.Context(), object))).To(Succeed())
	}
	token, err := h.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return token.Status.Token
}

// podNamed is one of those that a Deployment of the platform runs.
func (h *host) podNamed(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	g := NewWithT(t)
	var pods corev1.PodList
	g.Expect(h.WithWatch.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": name})).To(Succeed())
	g.Expect(pods.Items).NotTo(BeEmpty())
	return &pods.Items[0]
}

// scrape reads the metrics of a pod through a forwarded port. Its certificate is one that it made itself.
func (h *host) scrape(t *testing.T, pod *corev1.Pod, port int, token string) string {
	t.Helper()
	g := NewWithT(t)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+h.forward(t, pod, port)+"/metrics", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// forward opens a port on this machine to a port of a pod and gives its address.
func (h *host) forward(t *testing.T, pod *corev1.Pod, port int) string {
	t.Helper()
	g := NewWithT(t)
	url := h.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer, err := portforward.NewSPDYOverWebsocketDialer(url, h.config)
	g.Expect(err).NotTo(HaveOccurred())
	stop, ready := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop) })
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf(":%d", port)}, stop, ready, io.Discard, io.Discard)
	g.Expect(err).NotTo(HaveOccurred())
	go func() { _ = forwarder.ForwardPorts() }()
	g.Eventually(ready, short).Should(BeClosed())
	ports, err := forwarder.GetPorts()
	g.Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
}
