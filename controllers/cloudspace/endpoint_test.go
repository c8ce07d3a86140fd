// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/step"
)

// withHostname makes it a CloudSpace that asks for a hostname.
func withHostname(hostname string) func(*v1alpha1.CloudSpace) {
	return func(c *v1alpha1.CloudSpace) {
		c.Spec.Endpoint = v1alpha1.Endpoint{Type: v1alpha1.EndpointHostname, Hostname: hostname}
	}
}

// everyEndpoint is a platform that offers every endpoint.
func everyEndpoint() configv1alpha1.Endpoint {
	return configv1alpha1.Endpoint{
		LoadBalancer: &configv1alpha1.LoadBalancerEndpoint{},
		Hostname: &configv1alpha1.HostnameEndpoint{
			Domains: []string{"spaces.example.com", "example.org", "inner.example.org"}, Reserved: []string{"console.example.org"},
			Ingress: &configv1alpha1.IngressEndpoint{Annotations: map[string]string{"example.com/passthrough": "true"}},
		},
	}
}

func TestOnlyWhatThePlatformOffersIsAdmitted(t *testing.T) {
	const (
		notOffered = "EndpointNotOffered"
		taken      = "HostnameTaken"
		offered    = "offered are names one label below spaces.example.com, example.org, inner.example.org"
	)
	nothing := configv1alpha1.Endpoint{}
	withoutDomains := configv1alpha1.Endpoint{Hostname: &configv1alpha1.HostnameEndpoint{}}
	tests := map[string]struct {
		asked               v1alpha1.Endpoint
		offer               configv1alpha1.Endpoint
		taken               bool
		wantReason, message string
	}{
		"nothing said":                              {offer: nothing},
		"within the cluster":                        {asked: v1alpha1.Endpoint{Type: "InCluster"}, offer: nothing},
		"a load balancer":                           {asked: v1alpha1.Endpoint{Type: "LoadBalancer"}, offer: everyEndpoint()},
		"a load balancer that is not offered":       {asked: v1alpha1.Endpoint{Type: "LoadBalancer"}, offer: nothing, wantReason: notOffered, message: "endpoint.type LoadBalancer is not offered; offered are InCluster"},
		"a hostname":                                {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "a.spaces.example.com"}, offer: everyEndpoint()},
		"a hostname where none are offered":         {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "a.spaces.example.com"}, offer: withoutDomains, wantReason: notOffered, message: "endpoint.type Hostname is not offered; offered are InCluster"},
		"a hostname of another domain":              {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "a.example.net"}, offer: everyEndpoint(), wantReason: notOffered, message: offered},
		"a hostname two labels below":               {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "b.a.spaces.example.com"}, offer: everyEndpoint(), wantReason: notOffered, message: offered},
		"the domain itself":                         {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "spaces.example.com"}, offer: everyEndpoint(), wantReason: notOffered, message: offered},
		"a domain that only ends alike":             {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "evilspaces.example.com"}, offer: everyEndpoint(), wantReason: notOffered, message: offered},
		"a hostname of one label":                   {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "a"}, offer: everyEndpoint(), wantReason: notOffered, message: offered},
		"a domain that is below another":            {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "inner.example.org"}, offer: everyEndpoint(), wantReason: taken, message: "hostname inner.example.org is taken"},
		"a name of the platform's own":              {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "console.example.org"}, offer: everyEndpoint(), wantReason: taken, message: "hostname console.example.org is taken"},
		"a hostname that another CloudSpace has":    {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "a.example.org"}, offer: everyEndpoint(), taken: true, wantReason: taken, message: "hostname a.example.org is taken"},
		"a hostname that is taken, and not offered": {asked: v1alpha1.Endpoint{Type: "Hostname", Hostname: "a.example.net"}, offer: everyEndpoint(), taken: true, wantReason: notOffered, message: offered},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := grantedScope(testCloudSpace("default", func(c *v1alpha1.CloudSpace) { c.Spec.Endpoint = tt.asked }))
			s.observed.hostnameTaken = tt.taken
			r := &Reconciler{Platform: &configv1alpha1.PlatformConfig{Endpoint: tt.offer}}
			err := r.admitEndpoint(t.Context(), s)
			if tt.wantReason == "" {
				if err != nil {
					t.Errorf("it is refused: %v", err)
				}
				return
			}
			reason, message := step.Explain(errOr(err), "")
			if reason != tt.wantReason || !strings.Contains(message, tt.message) || step.Class(err) != "Terminal" || !v1alpha1.IsTerminalReason(reason) {
				t.Errorf("got %s %q, want %s and %q, for good", reason, message, tt.wantReason, tt.message)
			}
		})
	}
}

func TestTheFirstWhoAskedHasTheHostname(t *testing.T) {
	asking := func(uid types.UID, at time.Duration) v1alpha1.CloudSpace {
		return *testCloudSpace("default", func(c *v1alpha1.CloudSpace) { c.UID, c.CreationTimestamp = uid, metav1.NewTime(noon.Add(at)) })
	}
	me := asking("m", 0)
	tests := map[string]struct {
		asked []v1alpha1.CloudSpace
		want  bool
	}{
		"nobody else asks":               {asked: []v1alpha1.CloudSpace{me}},
		"another asked later":            {asked: []v1alpha1.CloudSpace{asking("a", time.Second), me}},
		"another asked earlier":          {asked: []v1alpha1.CloudSpace{me, asking("z", -time.Second)}, want: true},
		"at the same time, a UID behind": {asked: []v1alpha1.CloudSpace{asking("z", 0), me}},
		"at the same time, a UID before": {asked: []v1alpha1.CloudSpace{asking("a", 0), me}, want: true},
		"one later and one earlier":      {asked: []v1alpha1.CloudSpace{asking("z", time.Hour), me, asking("z", -time.Hour)}, want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := takenFrom(&me, tt.asked); got != tt.want {
				t.Errorf("taken: %v, want %v", got, tt.want)
			}
			// Of all who ask, just one is not refused.
			var holders int
			for i := range tt.asked {
				if !takenFrom(&tt.asked[i], tt.asked) {
					holders++
				}
			}
			if holders != 1 {
				t.Errorf("%d have the hostname", holders)
			}
		})
	}
}

func TestTheServerOfALoadBalancer(t *testing.T) {
	given := func(ingress ...corev1.LoadBalancerIngress) *corev1.Service {
		return &corev1.Service{Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: ingress}}}
	}
	tests := map[string]struct {
		service     *corev1.Service
		want, waits string
	}{
		"no Service":                  {waits: "waiting for the load balancer"},
		"no address":                  {service: given(), waits: "waiting for the cloud to give the load balancer an address"},
		"an empty address":            {service: given(corev1.LoadBalancerIngress{}), waits: "waiting for the cloud to give the load balancer an address"},
		"an address":                  {service: given(corev1.LoadBalancerIngress{IP: "192.0.2.1"}), want: "https://192.0.2.1:443"},
		"an address of version 6":     {service: given(corev1.LoadBalancerIngress{IP: "2001:db8::1"}), want: "https://[2001:db8::1]:443"},
		"a name":                      {service: given(corev1.LoadBalancerIngress{Hostname: "a.elb.example.com"}), want: "https://a.elb.example.com:443"},
		"both":                        {service: given(corev1.LoadBalancerIngress{IP: "192.0.2.1", Hostname: "a.example.com"}), want: "https://192.0.2.1:443"},
		"an empty one, then two more": {service: given(corev1.LoadBalancerIngress{}, corev1.LoadBalancerIngress{IP: "192.0.2.2"}, corev1.LoadBalancerIngress{IP: "192.0.2.3"}), want: "https://192.0.2.2:443"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := loadBalancerServer(tt.service)
			if tt.waits == "" && (err != nil || got != tt.want) {
				t.Errorf("got %q and %v, want %s", got, err, tt.want)
			}
			if tt.waits != "" {
				if reason, message := step.Explain(errOr(err), ""); reason != "WaitingForAddress" || message != tt.waits || step.Class(err) != "Wait" {
					t.Errorf("got %s %q, want it to say %q", reason, message, tt.waits)
				}
			}
		})
	}
}

// Kubernetes refuses a Service whose load balancer class changes, and with it every later change of the control plane.
func TestALoadBalancerKeepsItsClass(t *testing.T) {
	made := func(class string) *helmv2.HelmRelease {
		text, err := json.Marshal(Values{ControlPlane: ControlPlaneValues{Service: &ServiceValues{Spec: ServiceSpecValues{LoadBalancerClass: class}}}})
		if err != nil {
			t.Fatal(err)
		}
		return &helmv2.HelmRelease{Spec: helmv2.HelmReleaseSpec{Values: &apiextensionsv1.JSON{Raw: text}}}
	}
	tests := map[string]struct {
		release *helmv2.HelmRelease
		want    string
	}{
		"there is no release yet":     {want: "example.com/new"},
		"there are no values":         {release: &helmv2.HelmRelease{}, want: "example.com/new"},
		"the values are of no use":    {release: &helmv2.HelmRelease{Spec: helmv2.HelmReleaseSpec{Values: &apiextensionsv1.JSON{Raw: []byte("7")}}}, want: "example.com/new"},
		"it was made with another":    {release: made("example.com/old"), want: "example.com/old"},
		"it was made without a class": {release: made(""), want: ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := grantedScope(testCloudSpace("default"))
			s.observed.controlPlane = tt.release
			values := Values{ControlPlane: ControlPlaneValues{Service: &ServiceValues{Spec: ServiceSpecValues{LoadBalancerClass: "example.com/new"}}}}
			release, err := desiredControlPlane(s, testPlatform(t), values)
			if err != nil {
				t.Fatal(err)
			}
			var got Values
			if err := json.Unmarshal(release.Spec.Values.Raw, &got); err != nil {
				t.Fatal(err)
			}
			if class := got.ControlPlane.Service.Spec.LoadBalancerClass; class != tt.want {
				t.Errorf("the class is %q, want %q", class, tt.want)
			}
		})
	}
}

// People get the endpoint; Flux on the host, and the operator, stay within the host cluster.
func TestAnEndpointOutsideHasTwoKubeconfigs(t *testing.T) {
	s := grantedScope(testCloudSpace("default", withHostname("alice.example.com")))
	text, err := clientcmd.Write(*written(s.names, newIdentity(t), newIdentity(t)))
	if err != nil {
		t.Fatal(err)
	}
	made, err := rebuildKubeconfig(text, s.names, "https://alice.example.com:443")
	if err != nil {
		t.Fatal(err)
	}
	for want, text := range map[string][]byte{
		"https://alice.example.com:443": made.text, "https://alice-default.vcluster-alice-default.svc:443": made.internal,
	} {
		config, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil || config.Host != want || len(config.CAData) == 0 || len(config.KeyData) == 0 {
			t.Errorf("one leads to %v, %v, want %s", config, err, want)
		}
	}
	if made.server != "https://alice.example.com:443" {
		t.Errorf("the server is %s", made.server)
	}
	for endpoint, want := range map[v1alpha1.EndpointType]string{
		"": "cloudspace-alice-default-kubeconfig", "InCluster": "cloudspace-alice-default-kubeconfig",
		"LoadBalancer": "cloudspace-alice-default-kubeconfig-internal", "Hostname": "cloudspace-alice-default-kubeconfig-internal",
	} {
		s.object.Spec.Endpoint.Type = endpoint
		platform := testPlatform(t)
		release, err := desiredInner(s, platform, roleFlux, &platform.Charts.Flux)
		if err != nil {
			t.Fatal(err)
		}
		if got := release.Spec.KubeConfig.SecretRef.Name; got != want {
			t.Errorf("with endpoint %q Flux uses %s, want %s", endpoint, got, want)
		}
	}
}

// What is made for endpoints outside the host cluster, in each way that a platform can choose.
func TestObjectsOfEndpoints(t *testing.T) {
	s := grantedScope(testCloudSpace("staging", withHostname("staging.spaces.example.com")))
	s.observed.credentials = &credentials{text: []byte("kubeconfig"), internal: []byte("internal kubeconfig")}
	var text []string
	for _, object := range []any{
		desiredInternalKubeconfig(s),
		desiredIngress(s, &configv1alpha1.IngressEndpoint{ClassName: "nginx", Annotations: map[string]string{"example.com/passthrough": "true"}}),
		desiredTLSRoute(s, &configv1alpha1.TLSRouteEndpoint{ParentRefs: []configv1alpha1.ParentReference{
			{Namespace: "gateways", Name: "cloudspaces", SectionName: "tls"}, {Namespace: "gateways", Name: "second"},
		}}),
	} {
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, string(document))
	}
	compareGolden(t, "endpoints.golden.yaml", []byte(strings.Join(text, "---\n")))
}

// Kubernetes puts the default class into an Ingress that is made without one, once: taking it out again would leave it with none.
func TestTheDefaultClassOfAnIngressStays(t *testing.T) {
	s := grantedScope(testCloudSpace("default", withHostname("a.example.com")))
	config := &configv1alpha1.IngressEndpoint{}
	if got := desiredIngress(s, config).Spec.IngressClassName; got != nil {
		t.Errorf("a new one has class %s, want none", *got)
	}
	s.observed.ingress = &networkingv1.Ingress{Spec: networkingv1.IngressSpec{IngressClassName: new("nginx")}}
	if got := desiredIngress(s, config).Spec.IngressClassName; got == nil || *got != "nginx" {
		t.Errorf("the class is %v, want it left", got)
	}
	config.ClassName = "other"
	if got := desiredIngress(s, config).Spec.IngressClassName; got == nil || *got != "other" {
		t.Errorf("the class is %v, want that of the platform", got)
	}
}

// A name that a CloudSpace may not have any more must not lead to it.
func TestAHostnameThatIsLostIsGivenUp(t *testing.T) {
	world := &podWorld{}
	r := world.reconciler()
	r.Platform = &configv1alpha1.PlatformConfig{Endpoint: everyEndpoint()}
	s := grantedScope(testCloudSpace("default", withHostname("a.example.org")))
	ours, theirs := desiredIngress(s, r.Platform.Endpoint.Hostname.Ingress), desiredIngress(s, r.Platform.Endpoint.Hostname.Ingress)
	ours.Labels, ours.UID = s.owner.Labels(), "uid-ingress"
	theirs.Labels = apply.Owner{UID: "somebody-else"}.Labels()
	s.observed.hostnameTaken = true
	for _, stage := range []struct {
		ingress *networkingv1.Ingress
		want    int
	}{{nil, 0}, {theirs, 0}, {ours, 1}} {
		s.observed.ingress = stage.ingress
		if err := r.admitEndpoint(t.Context(), s); step.Class(err) != "Terminal" {
			t.Errorf("got %v, want it refused", err)
		}
		if len(world.deleted) != stage.want {
			t.Errorf("deleted is %v, want %d", world.deleted, stage.want)
		}
	}
}
