// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
)

// host is a cluster that lacks nothing; tests take something away.
type host struct {
	version string
	served  map[string][]string
	objects []runtime.Object
	denied  string
}

func soundHost() *host {
	return &host{
		version: "v1.36.3",
		served: map[string][]string{
			"admissionregistration.k8s.io/v1": {"mutatingadmissionpolicies", "validatingadmissionpolicies"},
			"source.toolkit.fluxcd.io/v1":     {"helmcharts", "helmrepositories"},
			"helm.toolkit.fluxcd.io/v2":       {"helmreleases"},
			"gateway.networking.k8s.io/v1":    {"gateways", "tlsroutes"},
		},
		objects: []runtime.Object{
			fluxPod("source-controller", "flux-system"), fluxPod("helm-controller", "flux-system"),
			&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}},
			&networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.0/16", "fd00::/108"}}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mirror", Namespace: "kubeopera-system"}, Type: corev1.SecretTypeDockerConfigJson},
			&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "passthrough"}},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "charts", Namespace: "kubeopera-system"}},
		},
	}
}

func fluxPod(name, namespace string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"app": name}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func (h *host) without(kind, name string) {
	var left []runtime.Object
	for _, object := range h.objects {
		if accessor, ok := object.(metav1.Object); ok && accessor.GetName() == name && strings.Contains(kind, typeName(object)) {
			continue
		}
		left = append(left, object)
	}
	h.objects = left
}

func typeName(object runtime.Object) string {
	switch object.(type) {
	case *corev1.Pod:
		return "Pod"
	case *corev1.Secret:
		return "Secret"
	default:
		return "other"
	}
}

func (h *host) client(t *testing.T) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(h.objects...)
	discovery, ok := client.Discovery().(*fakediscovery.FakeDiscovery)
	if !ok {
		t.Fatal("no fake discovery")
	}
	discovery.FakedServerVersion = &version.Info{GitVersion: h.version}
	for groupVersion, resources := range h.served {
		list := &metav1.APIResourceList{GroupVersion: groupVersion}
		for _, name := range resources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		discovery.Resources = append(discovery.Resources, list)
	}
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review, _ := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview)
		review.Status.Allowed = review.Spec.ResourceAttributes.Resource != h.denied
		return true, review, nil
	})
	return client
}

// hostnames has the platform offer hostnames through Ingresses.
func hostnames(p *configv1alpha1.PlatformConfig) *configv1alpha1.HostnameEndpoint {
	p.Endpoint.Hostname = &configv1alpha1.HostnameEndpoint{Domains: []string{"spaces.example.com"}, Ingress: &configv1alpha1.IngressEndpoint{}}
	return p.Endpoint.Hostname
}

func throughGateways(p *configv1alpha1.PlatformConfig) {
	offer := hostnames(p)
	offer.Ingress, offer.TLSRoute = nil, &configv1alpha1.TLSRouteEndpoint{}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	tests := map[string]struct {
		without func(*host, *configv1alpha1.PlatformConfig)
		want    string
	}{
		"nothing":           {func(*host, *configv1alpha1.PlatformConfig) {}, ""},
		"an old Kubernetes": {func(h *host, _ *configv1alpha1.PlatformConfig) { h.version = "v1.35.9" }, "the cluster has v1.35.9, at least v1.36.0 is needed"},
		"mutating policies": {func(h *host, _ *configv1alpha1.PlatformConfig) {
			h.served["admissionregistration.k8s.io/v1"] = []string{"validatingadmissionpolicies"}
		}, "not served: mutatingadmissionpolicies of admissionregistration.k8s.io/v1"},
		"Flux":                 {func(h *host, _ *configv1alpha1.PlatformConfig) { delete(h.served, "helm.toolkit.fluxcd.io/v2") }, "not served: helmreleases of helm.toolkit.fluxcd.io/v2"},
		"an older Flux":        {func(h *host, _ *configv1alpha1.PlatformConfig) { delete(h.served, "source.toolkit.fluxcd.io/v1") }, "helmcharts of source.toolkit.fluxcd.io/v1, helmrepositories of source.toolkit.fluxcd.io/v1"},
		"a controller of Flux": {func(h *host, _ *configv1alpha1.PlatformConfig) { h.without("Pod", "helm-controller") }, "no pod with the label app=helm-controller runs"},
		"Flux but in a CloudSpace": {func(h *host, _ *configv1alpha1.PlatformConfig) {
			h.without("Pod", "helm-controller")
			h.objects = append(h.objects, fluxPod("helm-controller", "vcluster-a"))
		}, "no pod with the label app=helm-controller runs"},
		"a StorageClass":                      {func(h *host, _ *configv1alpha1.PlatformConfig) { h.without("other", "fast") }, "storageclass.kubernetes.io/is-default-class=true"},
		"the service range":                   {func(_ *host, p *configv1alpha1.PlatformConfig) { p.Host.ServiceCIDR = "10.0.0.0/16" }, "the PlatformConfig says 10.0.0.0/16, the cluster has 10.96.0.0/16, fd00::/108"},
		"a pull secret":                       {func(h *host, _ *configv1alpha1.PlatformConfig) { h.without("Secret", "mirror") }, "not in kubeopera-system: mirror"},
		"a usable pull secret":                {func(_ *host, p *configv1alpha1.PlatformConfig) { p.Images.PullSecrets = []string{"charts"} }, "charts (is of type )"},
		"a Secret for charts":                 {func(h *host, _ *configv1alpha1.PlatformConfig) { h.without("Secret", "charts") }, "not in kubeopera-system: charts"},
		"an IngressClass":                     {func(_ *host, p *configv1alpha1.PlatformConfig) { hostnames(p).Ingress.ClassName = "nginx" }, "there is no IngressClass nginx"},
		"nothing, with a class that is there": {func(_ *host, p *configv1alpha1.PlatformConfig) { hostnames(p).Ingress.ClassName = "passthrough" }, ""},
		"nothing, with the default class":     {func(_ *host, p *configv1alpha1.PlatformConfig) { hostnames(p) }, ""},
		"nothing, with TLSRoutes":             {func(_ *host, p *configv1alpha1.PlatformConfig) { throughGateways(p) }, ""},
		"the Gateway API": {func(h *host, p *configv1alpha1.PlatformConfig) {
			throughGateways(p)
			delete(h.served, "gateway.networking.k8s.io/v1")
		}, "install the Gateway API with TLSRoute; not served: tlsroutes of gateway.networking.k8s.io/v1"},
		"TLSRoutes, with an older Gateway API": {func(h *host, p *configv1alpha1.PlatformConfig) {
			throughGateways(p)
			h.served["gateway.networking.k8s.io/v1"] = []string{"gateways"}
			h.served["gateway.networking.k8s.io/v1alpha2"] = []string{"tlsroutes"}
		}, "not served: tlsroutes of gateway.networking.k8s.io/v1"},
		"a right": {func(h *host, _ *configv1alpha1.PlatformConfig) { h.denied = "priorityclasses" }, "not allowed: create priorityclasses"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h, platform := soundHost(), &configv1alpha1.PlatformConfig{}
			platform.Host.ServiceCIDR = "10.96.0.0/16"
			platform.Images.PullSecrets = []string{"mirror"}
			platform.Charts.Flux.SecretName = "charts"
			tt.without(h, platform)
			var out bytes.Buffer
			err := Run(t.Context(), h.client(t), platform, &out)
			if tt.want == "" {
				if err != nil || strings.Contains(out.String(), "missing") {
					t.Errorf("%v:\n%s", err, out.String())
				}
				return
			}
			if !errors.Is(err, ErrNotReady) || strings.Count(out.String(), "\nmissing")+strings.Count(out.String()[:7], "missing") != 1 || !strings.Contains(out.String(), tt.want) {
				t.Errorf("%v, want one thing missing, that says %q:\n%s", err, tt.want, out.String())
			}
		})
	}
}

func TestWithoutAPlatformConfigNothingIsCompared(t *testing.T) {
	var out bytes.Buffer
	if err := Run(t.Context(), soundHost().client(t), nil, &out); err != nil || strings.Count(out.String(), notGiven) != 3 {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
