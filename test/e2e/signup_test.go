//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func (h *host) signUp(t *testing.T) {
	began := time.Now()
	tenant := fromFile(t, "../../config/samples/tenant.yaml", &v1alpha1.Tenant{})
	phases := h.followPhases(t, tenant)
	NewWithT(t).Expect(phases).To(Equal([]v1alpha1.TenantPhase{"", "Pending", "Provisioning", "InstallingFlux", "Ready"}))
	t.Logf("Ready after %s", time.Since(began).Round(time.Second))

	h.namesOfTheContract(t)
	inside := openCloudSpace(t, "alice-default")
	t.Run("a pod runs, with exec and logs", inside.podRuns)
	t.Run("a Service resolves and answers", inside.serviceAnswers)
	t.Run("nothing of the host or of other tenants is seen", inside.seesOnlyItself)
	t.Run("Flux inside installs a chart", inside.fluxInstalls)
}

// followPhases creates a Tenant and gives the phases that a watch saw, each once, until Ready.
func (h *host) followPhases(t *testing.T, tenant *v1alpha1.Tenant) []v1alpha1.TenantPhase {
	t.Helper()
	var seen []v1alpha1.TenantPhase
	create := func() { NewWithT(t).Expect(h.Create(t.Context(), tenant)).To(Succeed()) }
	h.follow(t, &v1alpha1.TenantList{}, create, func(event watch.Event) bool {
		current, ok := event.Object.(*v1alpha1.Tenant)
		if ok && (len(seen) == 0 || seen[len(seen)-1] != current.Status.Phase) {
			seen = append(seen, current.Status.Phase)
		}
		return ok && current.Status.Phase == v1alpha1.TenantReady
	}, named(tenant.Name))
	return seen
}

// namesOfTheContract looks for everything under the names that other programs rely on.
func (h *host) namesOfTheContract(t *testing.T) {
	t.Helper()
	g := NewWithT(t)
	var tenant v1alpha1.Tenant
	g.Expect(h.Get(t.Context(), client.ObjectKey{Name: "alice-default"}, &tenant)).To(Succeed())
	g.Expect(tenant.Status.Namespace).To(Equal("tenant-alice-default"))
	g.Expect(tenant.Status.KubeconfigSecret).To(Equal("tenant-alice-default-kubeconfig"))
	g.Expect(tenant.Status.CloudSpaces).To(Equal(v1alpha1.CloudSpaceCounts{Total: 1, Active: 1}))

	var namespace corev1.Namespace
	g.Expect(h.Get(t.Context(), client.ObjectKey{Name: "vcluster-alice-default"}, &namespace)).To(Succeed())
	for _, name := range []string{"alice-default", "alice-default-flux"} {
		g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kubeopera-system", Name: name}, &helmv2.HelmRelease{})).To(Succeed())
	}
	var stored, copied corev1.Secret
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kubeopera-system", Name: "cloudspace-alice-default-kubeconfig"}, &stored)).To(Succeed())
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kubeopera-system", Name: "tenant-alice-default-kubeconfig"}, &copied)).To(Succeed())
	g.Expect(stored.Data).To(And(HaveKey("config"), HaveKey("value")))
	g.Expect(copied.Data).To(Equal(stored.Data))
}

func probePod(name string, command ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "probe", Image: probeImage, ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
		}}},
	}
}

func (c cluster) podRuns(t *testing.T) {
	g := NewWithT(t)
	g.Expect(c.Create(t.Context(), probePod("shell", "/bin/sh", "-c", "echo started; sleep 3600"))).To(Succeed())
	c.waitForPod(t, "shell")
	g.Expect(c.exec(t, "shell", "echo", "from inside")).To(Equal("from inside\n"))
	logs, err := c.CoreV1().Pods("default").GetLogs("shell", &corev1.PodLogOptions{}).DoRaw(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(logs)).To(Equal("started\n"))
}

func (c cluster) serviceAnswers(t *testing.T) {
	g := NewWithT(t)
	g.Expect(c.Create(t.Context(), probePod("web", "probe", "serve"))).To(Succeed())
	g.Expect(c.Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	})).To(Succeed())
	c.waitForPod(t, "web")
	g.Eventually(func() (string, error) {
		return c.tryExec(t, "shell", "probe", "get", "http://web.default.svc.cluster.local/")
	}, short, interval).ShouldNot(BeEmpty())
}

func (c cluster) seesOnlyItself(t *testing.T) {
	g := NewWithT(t)
	var namespaces corev1.NamespaceList
	g.Expect(c.WithWatch.List(t.Context(), &namespaces)).To(Succeed())
	var names []string
	for _, namespace := range namespaces.Items {
		names = append(names, namespace.Name)
	}
	g.Expect(names).To(ConsistOf("default", "kube-system", "kube-public", "kube-node-lease", "flux-system"))

	err := c.WithWatch.List(t.Context(), &v1alpha1.TenantList{})
	g.Expect(meta.IsNoMatchError(err) || apierrors.IsNotFound(err)).To(BeTrue(), "a CloudSpace must not know Tenants: %v", err)

	var pods corev1.PodList
	g.Expect(c.WithWatch.List(t.Context(), &pods)).To(Succeed())
	for _, pod := range pods.Items {
		g.Expect(pod.Namespace).To(BeElementOf("default", "kube-system", "flux-system"))
	}
}

// fluxInstalls lets Flux inside the CloudSpace install a chart from a registry, all by itself.
func (c cluster) fluxInstalls(t *testing.T) {
	g := NewWithT(t)
	pushChart(t, "testdata/hello")
	g.Expect(c.Create(t.Context(), &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Name: "registry", Namespace: "default"},
		Spec: sourcev1.HelmRepositorySpec{
			URL: "oci://" + registry + "/charts", Type: sourcev1.HelmRepositoryTypeOCI, Insecure: true,
			Interval: metav1.Duration{Duration: time.Hour},
		},
	})).To(Succeed())
	g.Expect(c.Create(t.Context(), &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "default"},
		Spec: helmv2.HelmReleaseSpec{
			Interval: metav1.Duration{Duration: time.Hour},
			Chart: &helmv2.HelmChartTemplate{Spec: helmv2.HelmChartTemplateSpec{
				Chart: "hello", Version: "1.0.0",
				SourceRef: helmv2.CrossNamespaceObjectReference{Kind: sourcev1.HelmRepositoryKind, Name: "registry"},
			}},
		},
	})).To(Succeed())
	g.Eventually(func(g Gomega) {
		var release helmv2.HelmRelease
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "hello"}, &release)).To(Succeed())
		g.Expect(meta.IsStatusConditionTrue(release.Status.Conditions, "Ready")).To(BeTrue(), "%v", release.Status.Conditions)
	}, 2*time.Minute, interval).Should(Succeed())
	var greeting corev1.ConfigMap
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "hello"}, &greeting)).To(Succeed())
	g.Expect(greeting.Data).To(HaveKeyWithValue("greeting", "hello"))
}

func (c cluster) waitForPod(t *testing.T, name string) {
	t.Helper()
	NewWithT(t).Eventually(func(g Gomega) {
		var pod corev1.Pod
		g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod)).To(Succeed())
		g.Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		g.Expect(pod.Status.ContainerStatuses[0].Ready).To(BeTrue())
	}, short, interval).Should(Succeed())
}

func (c cluster) exec(t *testing.T, pod string, command ...string) string {
	t.Helper()
	out, err := c.tryExec(t, pod, command...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return out
}

func (c cluster) tryExec(t *testing.T, pod string, command ...string) (string, error) {
	t.Helper()
	request := c.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(c.config, "GET", request.URL().String())
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: io.Discard})
	return out.String(), err
}
