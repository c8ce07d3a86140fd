//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Where the metadata service of a cloud would be; here a server on the node.
	metadataAddress = "169.254.169.254"
	nodeAddress     = "192.168.255.2"
	nodePort        = 18080
)

// disguises are labels that tenants give their pods in the hope that a policy of the host trusts them: those that vCluster's own policies
// select, those of the platform, and those of other CloudSpaces.
var disguises = map[string]map[string]string{
	"plain":      {"app": "plain"},
	"disguise-1": {"app": "vcluster-snapshot", "k8s-app": "vcluster-kube-dns", "release": "alice-default", "vcluster.loft.sh/managed-by": "bob-default"},
	"disguise-2": {"app": "loft", "k8s-app": "kube-dns", "release": "x", "app.kubernetes.io/name": "cloudspace-resolver"},
	"disguise-3": {"app": "vcluster", "release": "bob-default", "vcluster.loft.sh/managed-by": "x", "app.kubernetes.io/name": "tenant-controller"},
}

// targets are addresses, as probe reach has them, and who reaches them.
type targets struct {
	// alice's and bob's are pods and Services of theirs.
	alice, bob []string
	// host is what of the host cluster nobody in a CloudSpace reaches.
	host []string
	// outside is a pod of the host cluster.
	outside []string
}

// isolation sends real packets, over TCP and as datagrams, to pods and Services: every address that a CloudSpace must not reach is at the
// same time reached from where it may be, so that none is closed only because nobody listens.
func (h *host) isolation(t *testing.T) {
	g := NewWithT(t)
	alice, bob := openCloudSpace(t, "alice-default"), openCloudSpace(t, "bob-default")
	h.outsider(t)
	for _, inside := range []cluster{alice, bob} {
		g.Expect(inside.Create(t.Context(), smallPod("target", nil, "probe", "serve"))).To(Succeed())
		g.Expect(inside.Create(t.Context(), targetService())).To(Succeed())
	}
	for name, labels := range disguises {
		g.Expect(alice.Create(t.Context(), smallPod(name, labels, "/bin/sh", "-c", "sleep 3600"))).To(Succeed())
	}
	for _, inside := range []cluster{alice, bob} {
		inside.waitForPod(t, "target")
	}
	for name := range disguises {
		alice.waitForPod(t, name)
	}
	all := targets{
		alice: append(alice.servedBy(t), h.controlPlaneOf(t, "alice-default")...),
		bob:   append(bob.servedBy(t), h.controlPlaneOf(t, "bob-default")...),
		host:  h.own(t), outside: both(h.addressOf(t, "outsider") + ":8080"),
	}
	t.Run("packets", func(t *testing.T) { h.packets(t, alice, bob, all) })
	t.Run("names", func(t *testing.T) { h.names(t, alice) })
	t.Run("Services that lead elsewhere", func(t *testing.T) { h.misleadingServices(t, alice, bob) })
	t.Run("pods that escape", func(t *testing.T) { h.escapesFromInside(t, alice) })
	t.Run("a new pod is filtered soon", func(t *testing.T) { alice.firstMoments(t, all.outside[0]) })
	for _, inside := range []cluster{alice, bob} {
		g.Expect(client.IgnoreNotFound(inside.Delete(t.Context(), targetService()))).To(Succeed())
		g.Expect(inside.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("default"), client.MatchingLabels{"e2e": "isolation"}, client.GracePeriodSeconds(0))).To(Succeed())
	}
}

// packets go both ways, and to the host.
func (h *host) packets(t *testing.T, alice, bob cluster, all targets) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(h.open(t, "outsider", append(all.host, all.outside...)...)).To(ConsistOf(append(all.host, all.outside...)), "from the host cluster")
		g.Expect(bob.open(t, "target", all.bob...)).To(ConsistOf(all.bob), "within bob-default")
		g.Expect(alice.open(t, "plain", all.alice...)).To(ConsistOf(all.alice), "within alice-default")
	}, short, interval).Should(Succeed())
	g := NewWithT(t)
	forbidden := append(append(append([]string{}, all.bob...), all.host...), all.outside...)
	for name := range disguises {
		g.Expect(alice.open(t, name, forbidden...)).To(BeEmpty(), "from alice-default's pod %s", name)
		g.Expect(alice.open(t, name, all.alice...)).To(ConsistOf(all.alice), "within alice-default, pod %s", name)
	}
	// The local host cluster filters IPv4 alone. Each interface with IPv6 has an address that is reached over the bridge, past all policies.
	g.Expect(alice.exec(t, "plain", "cat", "/proc/net/if_inet6")).To(BeEmpty(), "addresses that no policy is about")
	g.Expect(bob.open(t, "target", append(all.alice, all.outside...)...)).To(BeEmpty(), "from bob-default")
	g.Expect(h.open(t, "outsider", append(all.alice, all.bob...)...)).To(BeEmpty(), "from the host cluster's other pods")
}

// names are asked of CoreDNS in the CloudSpace, and of the resolver itself.
func (h *host) names(t *testing.T, alice cluster) {
	t.Helper()
	g := NewWithT(t)
	var resolver corev1.Service
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kubeopera-core", Name: "cloudspace-resolver"}, &resolver)).To(Succeed())
	asks := smallPod("asks", nil, "/bin/sh", "-c", "sleep 3600")
	asks.Spec.DNSPolicy, asks.Spec.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{resolver.Spec.ClusterIP}}
	g.Expect(alice.Create(t.Context(), asks)).To(Succeed())
	alice.waitForPod(t, "asks")
	g.Expect(alice.open(t, "plain", both(resolver.Spec.ClusterIP+":53")...)).To(HaveLen(2), "the resolver answers over both")

	outside := strings.TrimSuffix(registry, ":5000")
	for _, pod := range []string{"plain", "asks"} {
		g.Expect(alice.tryExec(t, pod, "probe", "resolve", outside)).To(Equal(nodeAddress+"\n"), "a name outside of the CloudSpace, for %s", pod)
	}
	for _, name := range []string{
		"cloudspace-resolver.kubeopera-core.svc.cluster.local", "bob-default.vcluster-bob-default.svc.cluster.local",
		"alice-default-etcd.vcluster-alice-default.svc.cluster.local", "tenant-controller-metrics.kubeopera-system.svc.cluster.local",
	} {
		g.Expect(h.tryExec(t, "outsider", "probe", "resolve", name)).NotTo(BeEmpty(), "%s on the host cluster", name)
		for _, pod := range []string{"plain", "asks"} {
			out, err := alice.tryExec(t, pod, "probe", "resolve", name)
			g.Expect(err).To(HaveOccurred(), "%s resolves for %s: %s", name, pod, out)
		}
	}
	// A name that both have is the CloudSpace's own; vCluster puts it into the hosts file of each pod too.
	const server = "kubernetes.default.svc.cluster.local"
	onHost, err := h.tryExec(t, "outsider", "probe", "resolve", server)
	g.Expect(err).NotTo(HaveOccurred())
	for _, pod := range []string{"plain", "asks"} {
		g.Expect(alice.tryExec(t, pod, "probe", "resolve", server)).NotTo(Equal(onHost), "for %s", pod)
	}
}

var lastAnswer = regexp.MustCompile(`^(\d+) of (\d+) tries were answered, the last (\d+) ms`)

// firstMoments measures how long a pod that is just started reaches what it must not. A plugin filters a pod once it knows its address.
func (c cluster) firstMoments(t *testing.T, forbidden string) {
	t.Helper()
	g := NewWithT(t)
	const pods = 3
	for i := range pods {
		pod := smallPod(fmt.Sprintf("first-%d", i), nil, "probe", "window", forbidden)
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		g.Expect(c.Create(t.Context(), pod)).To(Succeed())
	}
	for i := range pods {
		name := fmt.Sprintf("first-%d", i)
		var said []string
		g.Eventually(func(g Gomega) {
			logs, err := c.CoreV1().Pods("default").GetLogs(name, &corev1.PodLogOptions{}).DoRaw(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			said = lastAnswer.FindStringSubmatch(string(logs))
			g.Expect(said).NotTo(BeNil(), "%s", logs)
		}, short, interval).Should(Succeed())
		last, err := strconv.Atoi(said[3])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(last).To(BeNumerically("<", 10_000), said[0])
		t.Log(name + ": " + said[0])
	}
}

// smallPod runs beside others on a machine of two cores.
func smallPod(name string, labels map[string]string, command ...string) *corev1.Pod {
	pod := probePod(name, command...)
	maps.Copy(pod.Labels, labels)
	pod.Labels["e2e"] = "isolation"
	pod.Spec.TerminationGracePeriodSeconds = new(int64(0))
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("8Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("40m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
	}
	return pod
}

func targetService() *corev1.Service {
	port := func(name string, protocol corev1.Protocol) corev1.ServicePort {
		return corev1.ServicePort{Name: name, Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: protocol}
	}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "target", Namespace: "default"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "target"}, Ports: []corev1.ServicePort{port("tcp", corev1.ProtocolTCP), port("udp", corev1.ProtocolUDP)}},
	}
}

// both are an address over TCP and as datagrams.
func both(address string) []string { return []string{"tcp/" + address, "udp/" + address} }

// outsider is a pod of the host cluster that no policy is about, and beside it servers on the node, where a cloud would have its
// metadata too.
func (h *host) outsider(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	pods := []*corev1.Pod{smallPod("outsider", nil, "probe", "serve")}
	for name, address := range map[string]string{"metadata": metadataAddress, "on-node": nodeAddress} {
		// Each of an address of its own: datagrams come back from where they were sent to.
		server := smallPod(name, nil, "probe", "serve", fmt.Sprintf("%s:%d", address, nodePort))
		server.Spec.HostNetwork = true
		pods = append(pods, server)
	}
	h.onNode(t.Context(), t, "ip", "address", "replace", metadataAddress+"/32", "dev", "lo")
	t.Cleanup(func() {
		for _, pod := range pods {
			_ = h.Delete(context.WithoutCancel(t.Context()), pod)
		}
	})
	for _, pod := range pods {
		g.Expect(h.Create(t.Context(), pod)).To(Succeed())
	}
	for _, pod := range pods {
		h.waitForPod(t, pod.Name)
	}
}

// own is what the host cluster has that no CloudSpace reaches: metadata, kubelet, API server, DNS, and what else listens on a node.
func (h *host) own(t *testing.T) []string {
	t.Helper()
	var dns corev1.Service
	NewWithT(t).Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: "kube-dns"}, &dns)).To(Succeed())
	found := []string{"tcp/" + nodeAddress + ":10250", "tcp/" + nodeAddress + ":6443", "tcp/10.96.0.1:443"}
	for _, address := range []string{metadataAddress, nodeAddress} {
		found = append(found, both(fmt.Sprintf("%s:%d", address, nodePort))...)
	}
	return append(found, both(dns.Spec.ClusterIP+":53")...)
}

// servedBy is what the target of a CloudSpace serves, at its own address and at its Service's.
func (c cluster) servedBy(t *testing.T) []string {
	t.Helper()
	var service corev1.Service
	NewWithT(t).Expect(c.Get(t.Context(), client.ObjectKeyFromObject(targetService()), &service)).To(Succeed())
	return append(both(c.addressOf(t, "target")+":8080"), both(service.Spec.ClusterIP+":80")...)
}

// controlPlaneOf is what a control plane serves: its API server, its etcd, and its DNS.
func (h *host) controlPlaneOf(t *testing.T, hostName string) []string {
	t.Helper()
	var found []string
	NewWithT(t).Eventually(func(g Gomega) {
		var pods corev1.PodList
		g.Expect(h.WithWatch.List(t.Context(), &pods, client.InNamespace("vcluster-"+hostName))).To(Succeed())
		found = nil
		for _, pod := range pods.Items {
			switch {
			case pod.Labels["app"] == "vcluster" && pod.Labels["release"] == hostName:
				found = append(found, "tcp/"+pod.Status.PodIP+":8443")
			case pod.Labels["app"] == "vcluster-etcd" && pod.Labels["release"] == hostName:
				found = append(found, "tcp/"+pod.Status.PodIP+":2379")
			case pod.Labels["k8s-app"] == "vcluster-kube-dns" && strings.HasPrefix(pod.Name, "coredns-"):
				found = append(found, both(pod.Status.PodIP+":1053")...)
			}
		}
		g.Expect(found).To(HaveLen(4), "%v", found)
		g.Expect(found).NotTo(ContainElement(ContainSubstring("/:")), "a pod that was just made has no address")
	}, short, interval).Should(Succeed())
	g := NewWithT(t)
	var service corev1.Service
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "vcluster-" + hostName, Name: hostName}, &service)).To(Succeed())
	return append(found, "tcp/"+service.Spec.ClusterIP+":443")
}

func (c cluster) addressOf(t *testing.T, pod string) string {
	t.Helper()
	var found corev1.Pod
	g := NewWithT(t)
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: pod}, &found)).To(Succeed())
	g.Expect(found.Status.PodIP).NotTo(BeEmpty())
	return found.Status.PodIP
}

// open are those of the targets that a pod reaches.
func (c cluster) open(t *testing.T, pod string, targets ...string) []string {
	t.Helper()
	g := NewWithT(t)
	out, err := c.tryExec(t, pod, append([]string{"probe", "reach"}, targets...)...)
	g.Expect(err).NotTo(HaveOccurred())
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	g.Expect(lines).To(HaveLen(len(targets)), out)
	var reached []string
	for _, line := range lines {
		if target, ok := strings.CutPrefix(line, "open "); ok {
			reached = append(reached, target)
		}
	}
	return reached
}
