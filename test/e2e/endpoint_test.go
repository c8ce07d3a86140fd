//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

const (
	// late asks for a hostname that is taken.
	late = "mallory"
	// balanced has a load balancer; hosted has a hostname, and several members.
	balanced = "judy"
	hosted   = "kate"
	hostname = "kate.spaces.hostcluster.internal"
	// Addresses of the service range that no Service has: the node leads them to kube-proxy, as a cloud would lead its own to nodes.
	firstAddress  = "10.96.255.201"
	secondAddress = "10.96.255.202"
)

// endpoints reaches one CloudSpace at a load balancer and one by its name. The test plays the cloud, which gives addresses; the host
// cluster's forwarder plays the ingress controller.
func (h *host) endpoints(t *testing.T) {
	g := NewWithT(t)
	g.Expect(h.Create(t.Context(), tenantWith(balanced, func(spec *v1alpha1.CloudSpaceSpec) {
		spec.Endpoint.Type = v1alpha1.EndpointLoadBalancer
	}))).To(Succeed())
	g.Expect(h.Create(t.Context(), tenantWith(hosted, func(spec *v1alpha1.CloudSpaceSpec) {
		spec.Endpoint = v1alpha1.Endpoint{Type: v1alpha1.EndpointHostname, Hostname: hostname}
		spec.ControlPlane.HighAvailability = true
		spec.Resources.CPU = resource.MustParse("3")
	}))).To(Succeed())
	g.Eventually(h.reasonOf(t, balanced, "KubeconfigReady"), provisioning, interval).Should(Equal("WaitingForAddress"))
	h.giveAddress(t, balanced, firstAddress)
	h.waitForTenant(t, balanced)
	h.waitForTenant(t, hosted)

	t.Run("at a load balancer, whatever its address", h.atItsAddress)
	t.Run("by a name that nobody else can have", h.byItsName)
}

func tenantWith(id string, alter func(*v1alpha1.CloudSpaceSpec)) *v1alpha1.Tenant {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}}
	alter(&tenant.Spec.DefaultCloudSpace.Template.Spec)
	return tenant
}

// atItsAddress follows a load balancer that gets another address, without a restart of the control plane.
func (h *host) atItsAddress(t *testing.T) {
	g := NewWithT(t)
	pods := h.podsOf(t, balanced, "vcluster")
	var service corev1.Service
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "vcluster-" + balanced, Name: balanced}, &service)).To(Succeed())
	g.Expect(service.Spec.Type).To(Equal(corev1.ServiceTypeLoadBalancer))
	g.Expect(service.Spec.Ports[0].NodePort).To(BeZero())
	for _, address := range []string{firstAddress, secondAddress} {
		h.giveAddress(t, balanced, address)
		g.Eventually(func(g Gomega) {
			config, err := clientcmd.RESTConfigFromKubeConfig(h.storedKubeconfig(t.Context(), g, balanced))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal("https://" + address + ":443"))
			g.Expect(config.Insecure).To(BeFalse())
			g.Expect(h.cloudSpace(t.Context(), g, balanced, "default").Status.Endpoint).To(Equal(config.Host))
			out, err := h.kubectlOnNode(t, h.storedKubeconfig(t.Context(), g, balanced), "get", "namespaces", "-o", "name")
			g.Expect(err).NotTo(HaveOccurred(), out)
			g.Expect(out).To(ContainSubstring("namespace/flux-system"))
		}, short, interval).Should(Succeed())
	}
	g.Expect(h.podsOf(t, balanced, "vcluster")).To(Equal(pods))
}

// byItsName comes in by the server name alone, as through an ingress controller, and sees the CloudSpace's own certificate.
func (h *host) byItsName(t *testing.T) {
	g := NewWithT(t)
	var ingress networkingv1.Ingress
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "vcluster-" + hosted, Name: "cloudspace"}, &ingress)).To(Succeed())
	g.Expect(ingress.Spec.Rules[0].Host).To(Equal(hostname))
	g.Expect(h.cloudSpace(t.Context(), g, hosted, "default").Status.Endpoint).To(Equal("https://" + hostname + ":443"))
	var namespaces corev1.NamespaceList
	g.Expect(h.byName(t).WithWatch.List(t.Context(), &namespaces)).To(Succeed())
	g.Expect(namespaces.Items).NotTo(BeEmpty())

	g.Expect(h.Create(t.Context(), tenantWith(late, func(spec *v1alpha1.CloudSpaceSpec) {
		spec.Endpoint = v1alpha1.Endpoint{Type: v1alpha1.EndpointHostname, Hostname: hostname}
	}))).To(Succeed())
	g.Eventually(h.reasonOf(t, late, "ControlPlaneReady"), short, interval).Should(Equal("HostnameTaken"))
	h.removeTenants(t, late)
}

// byName opens the CloudSpace that has a hostname with the kubeconfig that the platform stored: only where the name leads is changed,
// which DNS would say.
func (h *host) byName(t *testing.T) cluster {
	t.Helper()
	g := NewWithT(t)
	config, err := clientcmd.Load(h.storedKubeconfig(t.Context(), g, hosted))
	g.Expect(err).NotTo(HaveOccurred())
	for _, c := range config.Clusters {
		g.Expect(c.Server).To(Equal("https://" + hostname + ":443"))
		c.Server, c.TLSServerName = "https://"+os.Getenv("HOSTCLUSTER_REGISTRY_LOCAL"), hostname
	}
	file := t.TempDir() + "/kubeconfig"
	g.Expect(clientcmd.WriteToFile(*config, file)).To(Succeed())
	return open(t, file)
}

// giveAddress does what a cloud does for a load balancer.
func (h *host) giveAddress(t *testing.T, id, address string) {
	t.Helper()
	g := NewWithT(t)
	var service corev1.Service
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "vcluster-" + id, Name: id}, &service)).To(Succeed())
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: address}}
	g.Expect(h.Status().Patch(t.Context(), &service, client.MergeFrom(before))).To(Succeed())
}

// reasonOf gives the reason of a condition of a default CloudSpace.
func (h *host) reasonOf(t *testing.T, id, condition string) func() string {
	t.Helper()
	return func() string {
		var space v1alpha1.CloudSpace
		if h.Get(t.Context(), client.ObjectKey{Namespace: "tenant-" + id, Name: "default"}, &space) != nil {
			return ""
		}
		if found := meta.FindStatusCondition(space.Status.Conditions, condition); found != nil {
			return found.Reason
		}
		return ""
	}
}

func (h *host) storedKubeconfig(ctx context.Context, g Gomega, id string) []byte {
	var stored corev1.Secret
	g.Expect(h.Get(ctx, client.ObjectKey{Namespace: "kubeopera-system", Name: "tenant-" + id + "-kubeconfig"}, &stored)).To(Succeed())
	return stored.Data["config"]
}

// kubectlOnNode runs kubectl with a kubeconfig, where the addresses of the cluster's network lead somewhere.
func (h *host) kubectlOnNode(t *testing.T, kubeconfig []byte, arguments ...string) (string, error) {
	t.Helper()
	const script = `file=$(mktemp) && cat > "$file" && kubectl --kubeconfig "$file" --request-timeout=5s "$@"; code=$?; rm -f "$file"; exit $code`
	command := exec.CommandContext(t.Context(), os.Getenv("HOSTCLUSTER"), append([]string{"exec", "--", "sh", "-c", script, "sh"}, arguments...)...)
	command.Stdin = bytes.NewReader(kubeconfig)
	out, err := command.CombinedOutput()
	return string(out), err
}
