// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// withEndpoint gives a Tenant's default CloudSpace an endpoint.
func withEndpoint(kind v1alpha1.EndpointType, hostname string) func(*v1alpha1.Tenant) {
	return func(o *v1alpha1.Tenant) {
		o.Spec.DefaultCloudSpace.Template.Spec.Endpoint = v1alpha1.Endpoint{Type: kind, Hostname: hostname}
	}
}

// giveAddress does what a cloud does for a load balancer.
func giveAddress(t *testing.T, id string, given ...corev1.LoadBalancerIngress) {
	t.Helper()
	service := get(t, &corev1.Service{ObjectMeta: named("vcluster-"+id, id)})
	before := service.DeepCopy()
	service.Status.LoadBalancer.Ingress = given
	if err := api.Status().Patch(t.Context(), service, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// leadsTo waits until people and Flux are led to a default CloudSpace as they should be.
func leadsTo(t *testing.T, id, server string) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		g.Expect(get(t, cloudSpace(id, "default")).Status.Endpoint).To(gomega.Equal(server))
		for name, want := range map[string]string{
			"cloudspace-" + id + "-kubeconfig": server, "tenant-" + id + "-kubeconfig": server,
			"cloudspace-" + id + "-kubeconfig-internal": "https://" + id + ".vcluster-" + id + ".svc:443",
		} {
			stored := get(t, secret(systemNamespace, name))
			for _, key := range []string{"config", "value"} {
				config, err := clientcmd.RESTConfigFromKubeConfig(stored.Data[key])
				g.Expect(err).NotTo(gomega.HaveOccurred())
				g.Expect(config.Host).To(gomega.Equal(want), "%s, %s", name, key)
			}
		}
	})
	release := get(t, &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id+"-flux")})
	if got := release.Spec.KubeConfig.SecretRef.Name; got != "cloudspace-"+id+"-kubeconfig-internal" {
		t.Errorf("Flux uses %s", got)
	}
}

func TestALoadBalancerIsWaitedForAndFollowed(t *testing.T) {
	t.Parallel()
	const id = "endpoint-lb"
	object := create(t, tenant(id, withEndpoint(v1alpha1.EndpointLoadBalancer, "")))
	says(t, cloudSpace(id, "default"), "KubeconfigReady False WaitingForAddress", "waiting for the cloud to give the load balancer an address")
	service := get(t, &corev1.Service{ObjectMeta: named("vcluster-"+id, id)})
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Spec.Ports[0].NodePort != 0 {
		t.Errorf("the Service is a %s with node port %d, want a load balancer without", service.Spec.Type, service.Spec.Ports[0].NodePort)
	}
	giveAddress(t, id, corev1.LoadBalancerIngress{IP: "192.0.2.10"})
	reach(t, object, "Ready")
	leadsTo(t, id, "https://192.0.2.10:443")
	asked := flux.times("cloudspace-" + id)

	giveAddress(t, id, corev1.LoadBalancerIngress{Hostname: "endpoint-lb.elb.example.com"})
	leadsTo(t, id, "https://endpoint-lb.elb.example.com:443")
	if again := flux.times("cloudspace-" + id); again != asked {
		t.Errorf("Flux was asked %d times more, though its way has not changed", again-asked)
	}
	giveAddress(t, id)
	says(t, object, "Ready False Degraded", "waiting for the cloud to give the load balancer an address")
	leadsTo(t, id, "https://endpoint-lb.elb.example.com:443")

	remove(t, object)
	gone(t, secret(systemNamespace, "cloudspace-"+id+"-kubeconfig-internal"))
	gone(t, secret(systemNamespace, "cloudspace-"+id+"-kubeconfig"))
}

func TestAHostnameLeadsToItsCloudSpace(t *testing.T) {
	t.Parallel()
	const id, hostname = "endpoint-name", "endpoint-name.spaces.example.com"
	object := reach(t, create(t, tenant(id, withEndpoint(v1alpha1.EndpointHostname, hostname))), "Ready")
	leadsTo(t, id, "https://"+hostname+":443")
	ingress := get(t, &networkingv1.Ingress{ObjectMeta: named("vcluster-"+id, "cloudspace")})
	want := essence(t, ingress)
	if ingress.Spec.Rules[0].Host != hostname || ingress.Annotations["example.com/passthrough"] != "true" {
		t.Errorf("the Ingress is %+v", ingress)
	}
	release := get(t, &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)})
	if !strings.Contains(string(release.Spec.Values.Raw), `.cluster.local","`+hostname+`"]`) {
		t.Errorf("the certificate would not have the hostname: %s", release.Spec.Values.Raw)
	}
	for what, disturb := range map[string]func(){
		"led elsewhere": func() { merge(t, ingress, `{"spec":{"rules":[{"host":"other.spaces.example.com"}]}}`) },
		"deleted": func() {
			if err := api.Delete(t.Context(), ingress); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			disturb()
			eventually(t, func(g gomega.Gomega) {
				after := &networkingv1.Ingress{}
				g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(ingress), after)).To(gomega.Succeed())
				g.Expect(cmp.Diff(want, essence(t, after))).To(gomega.BeEmpty(), "-want +got")
			})
		})
	}
	remove(t, object)
	gone(t, secret(systemNamespace, "cloudspace-"+id+"-kubeconfig-internal"))
}

// The first who asks for a name has it; the next one is told nothing about whose it is, and gets it when it is free.
func TestAHostnameHasOneCloudSpace(t *testing.T) {
	t.Parallel()
	const hostname = "wanted.spaces.example.com"
	first := create(t, tenant("endpoint-first", withEndpoint(v1alpha1.EndpointHostname, hostname)))
	says(t, first, "Ready True Provisioned", "")
	// The clock of creation counts seconds.
	made := get(t, cloudSpace("endpoint-first", "default")).CreationTimestamp
	eventually(t, func(g gomega.Gomega) { g.Expect(time.Now().Unix()).To(gomega.BeNumerically(">", made.Unix())) })
	second := create(t, tenant("endpoint-second", withEndpoint(v1alpha1.EndpointHostname, hostname)))
	says(t, cloudSpace("endpoint-second", "default"), "ControlPlaneReady False HostnameTaken", "hostname "+hostname+" is taken")
	reach(t, second, "Failed")
	if message := get(t, second).Status.Conditions[0].Message; strings.Contains(message, "first") {
		t.Errorf("it tells of another tenant: %s", message)
	}
	gone(t, &networkingv1.Ingress{ObjectMeta: named("vcluster-endpoint-second", "cloudspace")})
	leadsTo(t, "endpoint-first", "https://"+hostname+":443")

	remove(t, first)
	reach(t, second, "Ready")
	leadsTo(t, "endpoint-second", "https://"+hostname+":443")
}

func TestAHostnameThatIsNotOfferedIsRefused(t *testing.T) {
	t.Parallel()
	object := create(t, tenant("endpoint-refused", withEndpoint(v1alpha1.EndpointHostname, "a.example.org")))
	says(t, object, "Stalled True EndpointNotOffered", "hostname a.example.org is not offered; offered are names one label below spaces.example.com")
	gone(t, &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, "endpoint-refused")})
}

// A platform goes from Ingresses to a Gateway: the one comes, the other goes.
func TestAGatewayLeadsToACloudSpace(t *testing.T) {
	t.Parallel()
	const id, hostname = ofFaults + "gateway", "gateway.spaces.example.com"
	withIngress := startProcess(t, &process{id: id})
	object := reach(t, create(t, tenant(id, withEndpoint(v1alpha1.EndpointHostname, hostname))), "Ready")
	get(t, &networkingv1.Ingress{ObjectMeta: named("vcluster-"+id, "cloudspace")})
	withIngress.end(t)

	changed := platform.DeepCopy()
	changed.Endpoint.Hostname.Ingress = nil
	changed.Endpoint.Hostname.TLSRoute = &configv1alpha1.TLSRouteEndpoint{
		ParentRefs: []configv1alpha1.ParentReference{{Namespace: "gateways", Name: "cloudspaces", SectionName: "tls"}},
	}
	withGateway := startProcess(t, &process{id: id, platform: changed})
	route := &gatewayv1.TLSRoute{ObjectMeta: named("vcluster-"+id, "cloudspace")}
	eventually(t, func(g gomega.Gomega) {
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(route), route)).To(gomega.Succeed())
	})
	gone(t, &networkingv1.Ingress{ObjectMeta: named("vcluster-"+id, "cloudspace")})
	if route.Spec.Hostnames[0] != hostname || route.Spec.Rules[0].BackendRefs[0].Name != id || route.Spec.ParentRefs[0].Name != "cloudspaces" {
		t.Errorf("the TLSRoute is %+v", route.Spec)
	}
	want := essence(t, route)
	merge(t, route, `{"spec":{"hostnames":["other.spaces.example.com"]}}`)
	eventually(t, func(g gomega.Gomega) {
		after := &gatewayv1.TLSRoute{}
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(route), after)).To(gomega.Succeed())
		g.Expect(cmp.Diff(want, essence(t, after))).To(gomega.BeEmpty(), "-want +got")
	})
	t.Run("what is right is not written again", func(t *testing.T) {
		says(t, object, "Ready True Provisioned", "")
		mark := withGateway.calls.mark()
		merge(t, get(t, object), `{"metadata":{"annotations":{"example.com/look":"again"}}}`)
		merge(t, get(t, cloudSpace(id, "default")), `{"metadata":{"annotations":{"example.com/look":"again"}}}`)
		merge(t, get(t, route), `{"metadata":{"annotations":{"example.com/look":"again"}}}`)
		eventually(t, func(g gomega.Gomega) { g.Expect(get(t, route).Annotations).To(gomega.HaveKey("example.com/look")) })
		for _, made := range withGateway.calls.since(mark) {
			if made.about(id) && !made.standing() {
				t.Errorf("%s %s", made.verb, made.resource)
			}
		}
	})
	remove(t, object)
}
