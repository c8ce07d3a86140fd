// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// minimal is the least that a PlatformConfig must say. It is flow style so that tests can replace parts of it.
const minimal = `
apiVersion: config.kubeopera.io/v1alpha1
kind: PlatformConfig
charts:
  vcluster: {repository: "https://charts.example.com", name: vcluster, version: 0.36.1}
  flux: {repository: "oci://registry.example.com/charts", name: cloudspace-flux, version: 0.1.0}
host: {serviceCIDR: 10.96.0.0/16}
kubernetes:
- {version: v1.36.0, etcd: 3.6.8-0, coreDNS: 1.14.2}
sizes:
  Small:
    controlPlane: {requests: {cpu: 200m, memory: 512Mi}, limits: {cpu: "2", memory: 1Gi}}
    etcd: {requests: {cpu: 50m, memory: 128Mi}, limits: {cpu: 500m, memory: 512Mi}}
    coreDNS: {requests: {cpu: 20m, memory: 48Mi}, limits: {cpu: 250m, memory: 128Mi}}
`

func TestTheConfigsThatShipAreAccepted(t *testing.T) {
	for _, path := range []string{"config/manager/platform-config.yaml", "config/local/platform-config.yaml"} {
		t.Run(path, func(t *testing.T) {
			config, err := Load(filepath.Join("..", "..", "..", path))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := config.Sizes["Small"]; !ok || len(config.Kubernetes) == 0 {
				t.Errorf("it has sizes %v and versions %v", config.Sizes, config.Kubernetes)
			}
		})
	}
}

// The commented default is what people copy: it must show every field, in a comment at least.
func TestTheCommentedDefaultNamesEveryField(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "manager", "platform-config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{
		"vcluster", "flux", "advisor", "repository", "name", "version", "values", "registry", "serviceCIDR", "etcd", "coreDNS", "Small",
		"Medium", "Large", "controlPlane", "limitFactors", "podEphemeralStorage", "cpu", "memory", "deadlines", "namespace", "kubeconfig", "innerRelease",
		"backoff", "base", "max", "helm", "interval", "timeout", "serviceAccountName",
		"endpoint", "loadBalancer", "class", "annotations", "hostname", "domains", "reserved", "ingress", "className", "tlsRoute",
		"parentRefs", "sectionName", "network", "internet", "deniedCIDRs", "workloadEgress", "controlPlaneEgress", "fluxNamespace", "apiServers", "resolver",
	} {
		if !strings.Contains(string(text), field+":") {
			t.Errorf("it does not show the field %s", field)
		}
	}
}

func TestWhatIsLeftOutHasADefault(t *testing.T) {
	config, err := Parse([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	for name, durations := range map[string][2]time.Duration{
		"deadlines.namespace":    {config.Deadlines.Namespace.Duration, 2 * time.Minute},
		"deadlines.controlPlane": {config.Deadlines.ControlPlane.Duration, 15 * time.Minute},
		"deadlines.kubeconfig":   {config.Deadlines.Kubeconfig.Duration, 5 * time.Minute},
		"deadlines.flux":         {config.Deadlines.Flux.Duration, 10 * time.Minute},
		"deadlines.innerRelease": {config.Deadlines.InnerRelease.Duration, time.Minute},
		"backoff.base":           {config.Backoff.Base.Duration, 5 * time.Second},
		"backoff.max":            {config.Backoff.Max.Duration, 5 * time.Minute},
		"helm.interval":          {config.Helm.Interval.Duration, time.Hour},
		"helm.timeout":           {config.Helm.Timeout.Duration, 10 * time.Minute},
	} {
		if durations[0] != durations[1] {
			t.Errorf("%s is %v, want %v", name, durations[0], durations[1])
		}
	}
	if config.LimitFactors.CPU != 3 || config.LimitFactors.Memory != 2 {
		t.Errorf("limit factors are %+v, want 3 and 2", config.LimitFactors)
	}
	if got := config.PodEphemeralStorage.String(); got != "4Gi" {
		t.Errorf("the disk of a pod is %s, want 4Gi", got)
	}
	if config.Endpoint != (Endpoint{}) {
		t.Errorf("endpoints are %+v, want none offered", config.Endpoint)
	}
	if config.Charts.Advisor != nil {
		t.Errorf("the advisor is %+v, want none", config.Charts.Advisor)
	}
}

// Where nothing is said, ingress-nginx passes TLS through.
func TestTheWayToAHostnameHasADefault(t *testing.T) {
	nginx := map[string]string{
		"nginx.ingress.kubernetes.io/ssl-passthrough": "true", "nginx.ingress.kubernetes.io/backend-protocol": "HTTPS",
		"nginx.ingress.kubernetes.io/ssl-redirect": "true",
	}
	for text, want := range map[string]*IngressEndpoint{
		"{domains: [a.example.com]}":                                                    {Annotations: nginx},
		"{domains: [a.example.com], ingress: {className: a}}":                           {ClassName: "a", Annotations: nginx},
		"{domains: [a.example.com], ingress: {annotations: {a: b}}}":                    {Annotations: map[string]string{"a": "b"}},
		"{domains: [a.example.com], ingress: {annotations: {}}}":                        {Annotations: map[string]string{}},
		"{domains: [a.example.com], tlsRoute: {parentRefs: [{namespace: a, name: b}]}}": nil,
	} {
		config, err := Parse([]byte(minimal + "endpoint: {hostname: " + text + "}"))
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Endpoint.Hostname.Ingress; !reflect.DeepEqual(got, want) {
			t.Errorf("%s has the Ingress %+v, want %+v", text, got, want)
		}
	}
}

func TestWhatIsSetStays(t *testing.T) {
	config, err := Parse([]byte(minimal + `
limitFactors: {cpu: 7, memory: 5}
deadlines: {namespace: 11s, controlPlane: 12s, kubeconfig: 13s, flux: 14s, innerRelease: 15s, release: 20s}
backoff: {base: 16s, max: 17s}
helm: {interval: 18s, timeout: 19s, serviceAccountName: flux}
`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"limitFactors":{"cpu":7,"memory":5}`,
		`"deadlines":{"namespace":"11s","controlPlane":"12s","kubeconfig":"13s","flux":"14s","innerRelease":"15s","release":"20s"}`,
		`"backoff":{"base":"16s","max":"17s"}`,
		`"helm":{"interval":"18s","timeout":"19s","serviceAccountName":"flux"}`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s does not contain %s", text, want)
		}
	}
}

func TestJSONIsAcceptedToo(t *testing.T) {
	text, err := yaml.YAMLToJSON([]byte(minimal))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(text); err != nil {
		t.Error(err)
	}
}

// An error must name the field, so that a person finds it without reading the source.
func TestAFieldThatCannotBeIsNamed(t *testing.T) {
	tests := map[string]struct {
		// replace a part of the minimal config by another; with nothing to replace, it is added at the end.
		replace, by string
		want        string
	}{
		"an unknown field at the top":   {by: "colour: red", want: `unknown field "colour"`},
		"an unknown field deep down":    {replace: "etcd: 3.6.8-0", by: "etcd: 3.6.8-0, etdc: x", want: `unknown field "kubernetes[0].etdc"`},
		"an unknown field of a chart":   {replace: "name: vcluster", by: "name: vcluster, digest: x", want: `unknown field "charts.vcluster.digest"`},
		"an unknown field of a size":    {replace: "etcd: {requests: {cpu: 50m", by: "etcd: {replicas: 3, requests: {cpu: 50m", want: `unknown field "sizes.Small.etcd.replicas"`},
		"a field in other letters":      {replace: "serviceCIDR:", by: "serviceCidr:", want: `unknown field "host.serviceCidr"`},
		"a key twice":                   {replace: "host: {serviceCIDR: 10.96.0.0/16}", by: "host: {serviceCIDR: 10.96.0.0/16, serviceCIDR: 10.97.0.0/16}", want: `key "serviceCIDR" already set`},
		"a part twice":                  {by: "host: {serviceCIDR: 10.97.0.0/16}", want: `key "host" already set`},
		"a duration that is none":       {by: "backoff: {base: soon}", want: `invalid duration "soon"`},
		"a quantity that is none":       {replace: "cpu: 200m", by: "cpu: lots", want: "quantities must match"},
		"a number where a text must be": {replace: "name: vcluster", by: "name: 7", want: "charts.vcluster.name"},
		"another kind":                  {replace: "kind: PlatformConfig", by: "kind: Tenant", want: `no kind "Tenant" is registered`},
		"another version":               {replace: "config.kubeopera.io/v1alpha1", by: "config.kubeopera.io/v9", want: "config.kubeopera.io/v9"},
		"no YAML":                       {replace: "charts:", by: "\tcharts: [", want: "yaml"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(altered(t, tt.replace, tt.by)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to say %s", err, tt.want)
			}
		})
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "platform-config.yaml")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("for a file that is not there: %v, want it to name %s", err, path)
	}
	if err := os.WriteFile(path, []byte(minimal+"colour: red"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "colour") {
		t.Errorf("for a wrong field: %v, want it to name %s and colour", err, path)
	}
}

// altered is the minimal config with a part replaced, or with something at the end.
func altered(t *testing.T, replace, by string) string {
	t.Helper()
	if replace == "" {
		return minimal + by + "\n"
	}
	if !strings.Contains(minimal, replace) {
		t.Fatalf("the minimal config does not contain %s", replace)
	}
	return strings.Replace(minimal, replace, by, 1)
}

// Kubernetes would fill in the protocol, and what stands on the cluster would never be what it should be.
func TestRulesHaveTheirProtocol(t *testing.T) {
	path := filepath.Join(t.TempDir(), "platform-config.yaml")
	text := minimal + "network: {workloadEgress: [{to: [{podSelector: {}}], ports: [{port: 443}, {port: 53, protocol: UDP}]}]}"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"TCP", "UDP"} {
		if got := config.Network.WorkloadEgress[0].Ports[i].Protocol; got == nil || string(*got) != want {
			t.Errorf("protocol of port %d is %v, want %s", i, got, want)
		}
	}
}
