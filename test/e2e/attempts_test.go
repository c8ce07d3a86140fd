//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// escapes are pods that would leave their sandbox.
func escapes() map[string]*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	add := func(name string, alter func(*corev1.PodSpec)) {
		pods[name] = smallPod("escape-"+name, nil, "/bin/sh", "-c", "sleep 3600")
		alter(&pods[name].Spec)
	}
	security := func(context corev1.SecurityContext) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) { spec.Containers[0].SecurityContext = &context }
	}
	add("privileged", security(corev1.SecurityContext{Privileged: new(true)}))
	add("capability", security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}}}))
	add("raw", security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_RAW"}}}))
	add("unconfined", security(corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}))
	add("path", func(spec *corev1.PodSpec) {
		spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
	})
	add("network", func(spec *corev1.PodSpec) { spec.HostNetwork = true })
	add("processes", func(spec *corev1.PodSpec) { spec.HostPID = true })
	add("memory", func(spec *corev1.PodSpec) { spec.HostIPC = true })
	add("port", func(spec *corev1.PodSpec) {
		spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
	})
	add("sysctl", func(spec *corev1.PodSpec) {
		spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
	})
	return pods
}

// escapesFromInside are refused by the CloudSpace's own API server; one that does nothing of that is not.
func (h *host) escapesFromInside(t *testing.T, inside cluster) {
	t.Helper()
	g := NewWithT(t)
	for name, pod := range escapes() {
		g.Expect(inside.Create(t.Context(), pod)).To(MatchError(ContainSubstring("violates PodSecurity")), name)
	}
	g.Expect(inside.Create(t.Context(), smallPod("tame", nil, "/bin/sh", "-c", "sleep 3600"))).To(Succeed())
	inside.waitForPod(t, "tame")
	g.Expect(inside.exec(t, "tame", "cat", "/proc/self/status")).To(MatchRegexp(`CapBnd:\s[0-9a-f]{12}[014589cd][0-9a-f]{3}`), "bit 13 is CAP_NET_RAW")
	h.mountedByTheNode(t, inside)
	var onHost corev1.PodList
	g.Expect(h.WithWatch.List(t.Context(), &onHost, client.InNamespace("vcluster-alice-default"))).To(Succeed())
	for _, pod := range onHost.Items {
		g.Expect(pod.Name).NotTo(HavePrefix("escape-"))
		if strings.HasPrefix(pod.Name, "tame-x-") {
			h.isSealed(t, &pod)
		}
	}
}

// posed is a pod that never runs, and of which the syncer says that it does, at an address that workloads must not reach.
func (h *host) posed(t *testing.T, stolen client.Client, pod *corev1.Pod) {
	t.Helper()
	g := NewWithT(t)
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/never"}}
	g.Expect(stolen.Create(t.Context(), pod)).To(Succeed())
	t.Cleanup(func() { g.Expect(h.Delete(context.Background(), pod)).To(Succeed()) })
	for _, patch := range []string{
		`{"status":{"phase":"Running","podIP":"` + nodeAddress + `","podIPs":[{"ip":"` + nodeAddress + `"}]}}`, `{"status":{"phase":"Succeeded"}}`,
	} {
		err := stolen.Status().Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
		g.Expect(err).To(MatchError(ContainSubstring("a syncer tells conditions alone")), patch)
	}
	err := stolen.Status().Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"release":"alice-default"}}}`)))
	g.Expect(err).To(MatchError(ContainSubstring("a syncer makes no pods of control planes")))
}

// forgedRelease is what Helm would store of a release, left in the host namespace by the syncer: Flux keeps to its own storage.
func (h *host) forgedRelease(t *testing.T, stolen client.Client, in, name string) {
	t.Helper()
	g := NewWithT(t)
	forged := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "sh.helm.release.v1." + name + ".v99", Labels: map[string]string{"owner": "helm", "name": name, "status": "deployed", "version": "99"}},
		Type:       "helm.sh/release.v1", StringData: map[string]string{"release": "forged"},
	}
	g.Expect(stolen.Create(t.Context(), forged)).To(Succeed())
	t.Cleanup(func() { g.Expect(h.Delete(context.Background(), forged)).To(Succeed()) })
	release := &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeopera-system", Name: name}}
	g.Expect(h.WithWatch.Get(t.Context(), client.ObjectKeyFromObject(release), release)).To(Succeed())
	history := release.Status.History
	token := time.Now().Format(time.RFC3339Nano)
	asked := release.DeepCopy()
	metav1.SetMetaDataAnnotation(&asked.ObjectMeta, meta.ReconcileRequestAnnotation, token)
	g.Expect(h.WithWatch.Patch(t.Context(), asked, client.MergeFrom(release))).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(h.WithWatch.Get(t.Context(), client.ObjectKeyFromObject(release), release)).To(Succeed())
		g.Expect(release.Status.LastHandledReconcileAt).To(Equal(token))
	}, short, interval).Should(Succeed())
	g.Expect(release.Status.History).To(Equal(history))
}

// mountedByTheNode is a pod with a volume that a node would mount by its own network: it stays inside, and its events say why.
func (h *host) mountedByTheNode(t *testing.T, inside cluster) {
	t.Helper()
	g := NewWithT(t)
	pod := smallPod("mounts", nil, "/bin/sh")
	pod.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: nodeAddress, Path: "/"}}}}
	g.Expect(inside.Create(t.Context(), pod)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(inside.eventsOf(t, g, "mounts")).To(ContainElement(ContainSubstring("those that a node mounts by its own network are not available")))
	}, short, interval).Should(Succeed())
	g.Expect(inside.Delete(t.Context(), pod)).To(Succeed())
}

// isSealed looks at what a pod of a tenant has of the host: no token, and no more rights than its container runtime gives by default.
func (h *host) isSealed(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(pod.Spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
	for key := range pod.Annotations {
		g.Expect(key).NotTo(ContainSubstring("token"))
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected != nil {
			for _, source := range volume.Projected.Sources {
				g.Expect(source.ServiceAccountToken).To(BeNil(), "a token of the host in volume %s", volume.Name)
			}
		}
	}
	g.Expect(pod.Spec.PriorityClassName).To(Equal("cloudspace-workload"))
}

// misleadingServices lead to what is not the CloudSpace's, or take what is not: none comes to be on the host.
func (h *host) misleadingServices(t *testing.T, alice, bob cluster) {
	t.Helper()
	g := NewWithT(t)
	service := func(name string, alter func(*corev1.ServiceSpec)) *corev1.Service {
		made := targetService()
		made.Name = name
		alter(&made.Spec)
		return made
	}
	for want, made := range map[string]*corev1.Service{
		"NodePort and ExternalName are not available": service("np", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort }),
		"ExternalName are not available": service("en", func(s *corev1.ServiceSpec) {
			s.Type, s.ExternalName, s.Selector, s.Ports = corev1.ServiceTypeExternalName, "kubernetes.default.svc.cluster.local", nil, nil
		}),
		"externalIPs are not available":                      service("ei", func(s *corev1.ServiceSpec) { s.ExternalIPs = []string{nodeAddress} }),
		"a LoadBalancer needs allocateLoadBalancerNodePorts": service("lb", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer }),
		"loadBalancerIP, loadBalancerSourceRanges and":       service("li", func(s *corev1.ServiceSpec) { chosenAddress(s) }),
	} {
		g.Expect(alice.Create(t.Context(), made)).To(MatchError(ContainSubstring(want)), made.Name)
	}
	h.handMadeEndpoints(t, alice, bob.addressOf(t, "target"))
}

func chosenAddress(spec *corev1.ServiceSpec) {
	spec.Type, spec.AllocateLoadBalancerNodePorts, spec.LoadBalancerIP = corev1.ServiceTypeLoadBalancer, new(false), firstAddress
}

// handMadeEndpoints of Services without a selector, of either kind, do not reach the host. A Service with one does.
func (h *host) handMadeEndpoints(t *testing.T, alice cluster, foreign string) {
	t.Helper()
	g := NewWithT(t)
	for _, name := range []string{"aimed", "aimed-old"} {
		made := targetService()
		made.Name, made.Spec.Selector = name, nil
		g.Expect(alice.Create(t.Context(), made)).To(Succeed())
	}
	g.Expect(alice.Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "aimed", Namespace: "default", Labels: map[string]string{discoveryv1.LabelServiceName: "aimed"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{foreign}}},
		Ports: []discoveryv1.EndpointPort{{Name: new("tcp"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	})).To(Succeed())
	g.Expect(alice.Create(t.Context(), &corev1.Endpoints{ //nolint:staticcheck // an old kind that tenants may still use.
		ObjectMeta: metav1.ObjectMeta{Name: "aimed-old", Namespace: "default"},
		Subsets:    []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: foreign}}, Ports: []corev1.EndpointPort{{Name: "tcp", Port: 8080}}}}, //nolint:staticcheck // as above.
	})).To(Succeed())
	g.Eventually(func(g Gomega) {
		var told corev1.EventList
		g.Expect(alice.WithWatch.List(t.Context(), &told, client.InNamespace("default"))).To(Succeed())
		var refused []string
		for _, event := range told.Items {
			if strings.Contains(event.Message, "those made by hand are not available") {
				refused = append(refused, event.InvolvedObject.Name)
			}
		}
		g.Expect(refused).To(ContainElements(Equal("aimed"), HavePrefix("aimed-old")), "refusals are told inside")
	}, short, interval).Should(Succeed())
	var made discoveryv1.EndpointSliceList
	g.Expect(h.WithWatch.List(t.Context(), &made, client.InNamespace("vcluster-alice-default"))).To(Succeed())
	g.Expect(made.Items).NotTo(BeEmpty())
	for _, slice := range made.Items {
		for _, endpoint := range slice.Endpoints {
			g.Expect(endpoint.Addresses).NotTo(ContainElements(foreign), slice.Name)
		}
	}
}

// stolenToken is used straight at the host's API server: it may do what docs/isolation.md lists, and policies refuse the worst of it.
func (h *host) stolenToken(t *testing.T) {
	g := NewWithT(t)
	const in = "vcluster-alice-default"
	token, err := h.CoreV1().ServiceAccounts(in).CreateToken(t.Context(), "vc-alice-default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(h.config)
	config.BearerToken = token.Status.Token
	stolen, err := client.New(config, client.Options{Scheme: h.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	typed, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())

	asCopied := func(pod *corev1.Pod) *corev1.Pod {
		pod.Namespace, pod.Spec.PriorityClassName = in, "cloudspace-workload"
		return pod
	}
	for name, pod := range escapes() {
		g.Expect(stolen.Create(t.Context(), asCopied(pod), client.DryRunAll)).To(MatchError(ContainSubstring("violates PodSecurity")), name)
	}
	tame := asCopied(smallPod("tame", nil, "/bin/sh"))
	g.Expect(stolen.Create(t.Context(), tame.DeepCopy(), client.DryRunAll)).To(Succeed())
	tame.Labels["release"] = "alice-default"
	g.Expect(stolen.Create(t.Context(), tame, client.DryRunAll)).To(MatchError(ContainSubstring("a syncer makes no pods of control planes")))
	h.posed(t, stolen, asCopied(smallPod("posed", nil, "/bin/sh")))
	h.forgedRelease(t, stolen, in, "alice-default")
	node := targetService()
	node.Namespace, node.Spec.Type = in, corev1.ServiceTypeNodePort
	g.Expect(stolen.Create(t.Context(), node, client.DryRunAll)).To(MatchError(ContainSubstring("NodePort and ExternalName are not available")))

	text, err := os.ReadFile("../../docs/isolation.md")
	g.Expect(err).NotTo(HaveOccurred())
	everywhere := rightsIn(t, typed, "default")
	within := slices.DeleteFunc(rightsIn(t, typed, in), func(line string) bool { return slices.Contains(everywhere, line) })
	g.Expect(strings.Join(within, "\n")).To(Equal(block(string(text), "host namespace")))
	g.Expect(strings.Join(everywhere, "\n")).To(Equal(block(string(text), "everywhere")))
}

// rightsIn are the rights of a token in a namespace, one kind of object a line. What everybody has who is known is left out.
func rightsIn(t *testing.T, c kubernetes.Interface, namespace string) []string {
	t.Helper()
	review, err := c.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(review.Status.Incomplete).To(BeFalse())
	verbs := map[string][]string{}
	for _, rule := range review.Status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, kind := range rule.Resources {
				if group == "authorization.k8s.io" || group == "authentication.k8s.io" {
					continue
				}
				key := strings.TrimSuffix(kind+"."+group, ".")
				verbs[key] = append(verbs[key], rule.Verbs...)
			}
		}
	}
	var lines []string
	for key, may := range verbs {
		slices.Sort(may)
		lines = append(lines, key+": "+strings.Join(slices.Compact(may), " "))
	}
	slices.Sort(lines)
	return lines
}

// block is what stands between the fences of a block of this name.
func block(text, name string) string {
	_, rest, _ := strings.Cut(text, "```"+name+"\n")
	inside, _, _ := strings.Cut(rest, "\n```")
	return inside
}
