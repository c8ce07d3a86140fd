// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
)

// Both sides of every limit: want is what the error says, nothing means that it is accepted.
func TestValidation(t *testing.T) {
	const (
		vcluster = `repository: "https://charts.example.com", name: vcluster, version: 0.36.1`
		flux     = `repository: "oci://registry.example.com/charts", name: cloudspace-flux, version: 0.1.0`
		versions = `- {version: v1.36.0, etcd: 3.6.8-0, coreDNS: 1.14.2}`
		tag      = `etcd: 3.6.8-0`
		cidr     = `10.96.0.0/16`
		pod      = `{requests: {cpu: 200m, memory: 512Mi}, limits: {cpu: "2", memory: 1Gi}}`
	)
	tests := map[string]struct {
		replace, by string
		want        string
	}{
		"a chart from an HTTP repository":             {replace: vcluster, by: `repository: "http://charts.example.com", name: a, version: 1.0.0`},
		"a chart from an OCI registry":                {replace: vcluster, by: `repository: "oci://registry.example.com/a", name: a, version: 1.0.0`},
		"an OCI registry without TLS":                 {replace: flux, by: `repository: "oci://registry.example.com/a", name: a, version: 1.0.0, insecure: true`},
		"an HTTPS repository that should be insecure": {replace: vcluster, by: vcluster + ", insecure: true", want: "charts.vcluster.insecure: Forbidden: only an oci:// repository can be insecure"},
		"a repository of another scheme":              {replace: vcluster, by: `repository: "s3://bucket/charts", name: a, version: 1.0.0`, want: `charts.vcluster.repository: Unsupported value: "s3"`},
		"a repository without a host":                 {replace: vcluster, by: `repository: "https://", name: a, version: 1.0.0`, want: `charts.vcluster.repository: Invalid value: "https://": must be an oci:// or https:// URL`},
		"a repository that is a word":                 {replace: vcluster, by: `repository: charts, name: a, version: 1.0.0`, want: `charts.vcluster.repository: Invalid value: "charts"`},
		"a repository that is no URL":                 {replace: vcluster, by: `repository: "https://[", name: a, version: 1.0.0`, want: "charts.vcluster.repository: Invalid value"},
		"no repository":                               {replace: vcluster, by: `name: a, version: 1.0.0`, want: "charts.vcluster.repository: Invalid value"},
		"a chart without a name":                      {replace: "name: vcluster, ", by: "", want: "charts.vcluster.name: Required value"},
		"an exact version":                            {replace: "version: 0.36.1", by: "version: 0.36.1-rc.1+build.7"},
		"a version with v":                            {replace: "version: 0.36.1", by: "version: v0.36.1"},
		"a version range":                             {replace: "version: 0.36.1", by: "version: 0.36.x", want: `charts.vcluster.version: Invalid value: "0.36.x": must be an exact version`},
		"a version of two numbers":                    {replace: "version: 0.36.1", by: `version: "0.36"`, want: "charts.vcluster.version"},
		"no version":                                  {replace: ", version: 0.36.1", by: "", want: "charts.vcluster.version"},
		"values for the vCluster chart":               {replace: vcluster, by: vcluster + ", values: {a: 1}", want: "charts.vcluster.values: Forbidden: the values of the vCluster chart are the operator's"},
		"values for the Flux chart":                   {replace: flux, by: flux + ", values: {a: 1}"},
		"values that are a list":                      {replace: flux, by: flux + ", values: [a]", want: `charts.flux.values: Invalid value: "[\"a\"]": must be a map`},
		"values that are a word":                      {replace: flux, by: flux + ", values: a", want: "charts.flux.values"},
		"an advisor":                                  {replace: "charts:", by: "charts:\n  advisor: {" + flux + "}"},
		"an advisor that is wrong":                    {replace: "charts:", by: "charts:\n  advisor: {name: a, version: 1.0.0}", want: "charts.advisor.repository"},
		"a flux chart that is wrong":                  {replace: "version: 0.1.0", by: "version: latest", want: "charts.flux.version"},
		"credentials of a repository":                 {replace: flux, by: flux + ", secretName: a.b, certSecretName: c"},
		"credentials that are no name":                {replace: flux, by: flux + ", secretName: A", want: `charts.flux.secretName: Invalid value: "A"`},
		"an authority that is no name":                {replace: flux, by: flux + ", certSecretName: a/b", want: `charts.flux.certSecretName: Invalid value: "a/b"`},
		"pull secrets":                                {by: "images: {pullSecrets: [mirror, other], workloadsUsePullSecrets: true}"},
		"eight pull secrets":                          {by: "images: {pullSecrets: [a, b, c, d, e, f, g, h]}"},
		"nine pull secrets":                           {by: "images: {pullSecrets: [a, b, c, d, e, f, g, h, i]}", want: "images.pullSecrets: Too many: 9: must have at most 8 items"},
		"a pull secret twice":                         {by: "images: {pullSecrets: [a, b, a]}", want: `images.pullSecrets[2]: Duplicate value: "a"`},
		"a pull secret of 40 characters":              {by: "images: {pullSecrets: [" + strings.Repeat("a", 40) + "]}"},
		"a pull secret of 41 characters":              {by: "images: {pullSecrets: [" + strings.Repeat("a", 41) + "]}", want: "images.pullSecrets[0]: Invalid value"},
		"a pull secret with dots":                     {by: "images: {pullSecrets: [a.b]}", want: `images.pullSecrets[0]: Invalid value: "a.b"`},
		"a pull secret named as a syncer does":        {by: "images: {pullSecrets: [a-x-b]}", want: `images.pullSecrets[0]: Invalid value: "a-x-b"`},
		"no pull secrets for workloads":               {by: "images: {workloadsUsePullSecrets: true}", want: "images.workloadsUsePullSecrets: Forbidden: there are no pullSecrets"},
		"a service range of version 6":                {replace: cidr, by: `"fd00::/108"`},
		"a service range that is an address":          {replace: cidr, by: "10.96.0.1", want: "host.serviceCIDR: Invalid value: \"10.96.0.1\": must be an address range"},
		"no service range":                            {replace: cidr, by: `""`, want: "host.serviceCIDR"},
		"no Kubernetes version":                       {replace: "kubernetes:\n" + versions, by: "kubernetes: []", want: "kubernetes: Required value: at least one version"},
		"two Kubernetes versions":                     {replace: versions, by: versions + "\n- {version: v1.35.0, etcd: 3.6.7-0, coreDNS: 1.14.1}"},
		"the same Kubernetes version twice":           {replace: versions, by: versions + "\n" + versions, want: `kubernetes[1].version: Duplicate value: "v1.36.0"`},
		"a Kubernetes version without v":              {replace: "version: v1.36.0", by: "version: 1.36.0", want: `kubernetes[0].version: Invalid value: "1.36.0": must look like v1.36.0`},
		"a Kubernetes version with a leading zero":    {replace: "version: v1.36.0", by: "version: v1.036.0", want: "kubernetes[0].version"},
		"a Kubernetes version of another major":       {replace: "version: v1.36.0", by: "version: v2.0.0", want: "kubernetes[0].version"},
		"an image tag of 128 characters":              {replace: tag, by: "etcd: a" + strings.Repeat("b", 127)},
		"an image tag of 129 characters":              {replace: tag, by: "etcd: a" + strings.Repeat("b", 128), want: "kubernetes[0].etcd: Invalid value"},
		"an image tag that is a digest":               {replace: tag, by: `etcd: "sha256:abc"`, want: "kubernetes[0].etcd: Invalid value: \"sha256:abc\": must be an image tag"},
		"no image tag":                                {replace: "coreDNS: 1.14.2", by: `coreDNS: ""`, want: "kubernetes[0].coreDNS"},
		"no small size":                               {replace: "Small:", by: "Large:", want: "sizes[Small]: Required value: it is the default size"},
		"a size nobody knows":                         {replace: "sizes:", by: "sizes:\n  Huge: {}", want: `sizes: Unsupported value: "Huge": supported values: "Large", "Medium", "Small"`},
		"a size that is empty":                        {replace: "sizes:", by: "sizes:\n  Large: {}", want: "sizes[Large].etcd.requests[memory]: Required value"},
		"a limit like the request":                    {replace: pod, by: `{requests: {cpu: 200m, memory: 1Gi}, limits: {cpu: 200m, memory: 1Gi}}`},
		"a limit below the request":                   {replace: pod, by: `{requests: {cpu: 200m, memory: 1Gi}, limits: {cpu: 199m, memory: 1Gi}}`, want: `sizes[Small].controlPlane.limits[cpu]: Invalid value: "199m": must not be less than the request`},
		"no limit":                                    {replace: pod, by: `{requests: {cpu: 200m, memory: 1Gi}, limits: {cpu: 200m}}`, want: "sizes[Small].controlPlane.limits[memory]"},
		"no request":                                  {replace: pod, by: `{requests: {cpu: 200m}, limits: {cpu: 200m, memory: 1Gi}}`, want: "sizes[Small].controlPlane.requests[memory]: Required value: must be more than zero"},
		"a request of zero":                           {replace: pod, by: `{requests: {cpu: 0, memory: 1Gi}, limits: {cpu: 200m, memory: 1Gi}}`, want: "sizes[Small].controlPlane.requests[cpu]"},
		"workloads without the Internet":              {by: "network: {internet: Denied}"},
		"an Internet that is neither":                 {by: "network: {internet: Some}", want: `network.internet: Unsupported value: "Some": supported values: "Allowed", "Denied"`},
		"ranges that are denied":                      {by: `network: {deniedCIDRs: [203.0.113.0/24, "2001:db8::/32"]}`},
		"a denied range with bits too many":           {by: "network: {deniedCIDRs: [203.0.113.1/24]}", want: `network.deniedCIDRs[0]: Invalid value: "203.0.113.1/24"`},
		"a denied range that is everything":           {by: "network: {deniedCIDRs: [0.0.0.0/0]}", want: "network.deniedCIDRs[0]"},
		"a denied range that is an address":           {by: "network: {deniedCIDRs: [203.0.113.1]}", want: "network.deniedCIDRs[0]"},
		"API servers of the host":                     {by: `network: {apiServers: ["192.0.2.1:6443", "[2001:db8::1]:443"]}`},
		"an API server without a port":                {by: `network: {apiServers: ["192.0.2.1"]}`, want: `network.apiServers[0]: Invalid value: "192.0.2.1": must be an address and a port`},
		"an API server that is a name":                {by: `network: {apiServers: ["api.example.com:443"]}`, want: "network.apiServers[0]"},
		"a resolver":                                  {by: "network: {resolver: 10.96.0.53}"},
		"a resolver with a port":                      {by: `network: {resolver: "10.96.0.53:53"}`, want: "network.resolver: Invalid value"},
		"a namespace of Flux that is no name":         {by: "network: {fluxNamespace: a.b}", want: `network.fluxNamespace: Invalid value: "a.b"`},
		"rules of its own":                            {by: "network: {workloadEgress: [{to: [{ipBlock: {cidr: 10.20.0.0/24, except: [10.20.0.128/25]}}]}], controlPlaneEgress: [{to: [{podSelector: {}, namespaceSelector: {}}]}]}"},
		"a rule that leads everywhere":                {by: "network: {workloadEgress: [{ports: [{port: 443}]}]}", want: "network.workloadEgress[0].to: Required value: a rule without a destination lets everything through"},
		"a rule with a destination that is none":      {by: "network: {controlPlaneEgress: [{to: [{}]}]}", want: "network.controlPlaneEgress[0].to[0]: Invalid value"},
		"a rule with two destinations in one":         {by: "network: {controlPlaneEgress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}, podSelector: {}}]}]}", want: "network.controlPlaneEgress[0].to[0]"},
		"a rule to no range":                          {by: "network: {workloadEgress: [{to: [{ipBlock: {cidr: 10.0.0.1/8}}]}]}", want: "network.workloadEgress[0].to[0].ipBlock.cidr"},
		"an exception beyond the range":               {by: "network: {workloadEgress: [{to: [{ipBlock: {cidr: 10.0.0.0/16, except: [10.1.0.0/24]}}]}]}", want: "network.workloadEgress[0].to[0].ipBlock.except[0]"},
		"an exception of all of the range":            {by: "network: {workloadEgress: [{to: [{ipBlock: {cidr: 10.0.0.0/16, except: [10.0.0.0/16]}}]}]}", want: "network.workloadEgress[0].to[0].ipBlock.except[0]"},
		"a load balancer":                             {by: "endpoint: {loadBalancer: {}}"},
		"a load balancer of a class":                  {by: "endpoint: {loadBalancer: {class: example.com/internal, annotations: {example.com/a: b}}}"},
		"a class that cannot be":                      {by: `endpoint: {loadBalancer: {class: "a b"}}`, want: `endpoint.loadBalancer.class: Invalid value: "a b"`},
		"an annotation that cannot be":                {by: `endpoint: {loadBalancer: {annotations: {"a b": c}}}`, want: `endpoint.loadBalancer.annotations: Invalid value: "a b"`},
		"hostnames":                                   {by: "endpoint: {hostname: {domains: [a.example.com, b.example.com], reserved: [c.a.example.com]}}"},
		"a wildcard for a domain":                     {by: `endpoint: {hostname: {domains: ["*.example.com"]}}`, want: "endpoint.hostname.domains[0]: Invalid value"},
		"the same domain twice":                       {by: "endpoint: {hostname: {domains: [a.example.com, a.example.com]}}", want: `endpoint.hostname.domains[1]: Duplicate value: "a.example.com"`},
		"a reserved name that cannot be":              {by: `endpoint: {hostname: {reserved: ["-a"]}}`, want: "endpoint.hostname.reserved[0]: Invalid value"},
		"an Ingress":                                  {by: "endpoint: {hostname: {ingress: {className: a, annotations: {}}}}"},
		"a class of Ingresses that cannot be":         {by: "endpoint: {hostname: {ingress: {className: A}}}", want: "endpoint.hostname.ingress.className"},
		"an annotation of Ingresses that cannot be":   {by: `endpoint: {hostname: {ingress: {annotations: {"": b}}}}`, want: "endpoint.hostname.ingress.annotations"},
		"a Gateway":                                   {by: "endpoint: {hostname: {tlsRoute: {parentRefs: [{namespace: a, name: b, sectionName: c}, {namespace: a, name: d}]}}}"},
		"no Gateway":                                  {by: "endpoint: {hostname: {tlsRoute: {parentRefs: []}}}", want: "endpoint.hostname.tlsRoute.parentRefs: Required value: at least one Gateway"},
		"a Gateway without a name":                    {by: "endpoint: {hostname: {tlsRoute: {parentRefs: [{namespace: a, name: b}, {namespace: a}]}}}", want: "endpoint.hostname.tlsRoute.parentRefs[1].name: Invalid value"},
		"a Gateway without a namespace":               {by: "endpoint: {hostname: {tlsRoute: {parentRefs: [{name: b}]}}}", want: "endpoint.hostname.tlsRoute.parentRefs[0].namespace: Invalid value"},
		"a listener that cannot be":                   {by: "endpoint: {hostname: {tlsRoute: {parentRefs: [{namespace: a, name: b, sectionName: C}]}}}", want: "endpoint.hostname.tlsRoute.parentRefs[0].sectionName"},
		"Ingress and Gateway":                         {by: "endpoint: {hostname: {ingress: {}, tlsRoute: {parentRefs: [{namespace: a, name: b}]}}}", want: "endpoint.hostname.tlsRoute: Forbidden: only one of ingress and tlsRoute can be set"},
		"the smallest factors":                        {by: "limitFactors: {cpu: 1, memory: 1}"},
		"the largest factors":                         {by: "limitFactors: {cpu: 100, memory: 100}"},
		"a CPU factor above":                          {by: "limitFactors: {cpu: 101}", want: "limitFactors.cpu: Invalid value: 101: must be between 1 and 100"},
		"a memory factor above":                       {by: "limitFactors: {memory: 101}", want: "limitFactors.memory: Invalid value: 101"},
		"the least disk of a pod":                     {by: "podEphemeralStorage: 1Gi"},
		"less disk of a pod":                          {by: "podEphemeralStorage: 1023Mi", want: "podEphemeralStorage: Invalid value: \"1023Mi\": must be between 1Gi and 1Pi"},
		"too much disk of a pod":                      {by: "podEphemeralStorage: 2Pi", want: "podEphemeralStorage: Invalid value"},
		"a factor below":                              {by: "limitFactors: {memory: -1}", want: "limitFactors.memory: Invalid value: -1"},
		"the shortest durations":                      {by: "deadlines: {namespace: 100ms, controlPlane: 100ms, kubeconfig: 100ms, flux: 100ms, innerRelease: 100ms}"},
		"the longest durations":                       {by: "helm: {interval: 24h, timeout: 24h}"},
		"a namespace deadline too short":              {by: "deadlines: {namespace: 99ms}", want: `deadlines.namespace: Invalid value: "99ms": must be between 100ms and 24h`},
		"a control-plane deadline too long":           {by: "deadlines: {controlPlane: 24h1s}", want: "deadlines.controlPlane"},
		"a kubeconfig deadline too long":              {by: "deadlines: {kubeconfig: 25h}", want: "deadlines.kubeconfig"},
		"a Flux deadline below zero":                  {by: "deadlines: {flux: -1m}", want: "deadlines.flux"},
		"an inner release deadline too long":          {by: "deadlines: {innerRelease: 25h}", want: "deadlines.innerRelease"},
		"a base too short":                            {by: "backoff: {base: 1ms}", want: "backoff.base"},
		"a max too long":                              {by: "backoff: {max: 25h}", want: `backoff.max: Invalid value: "25h0m0s": must be between`},
		"a max like the base":                         {by: "backoff: {base: 3s, max: 3s}"},
		"a max below the base":                        {by: "backoff: {base: 3s, max: 2s}", want: `backoff.max: Invalid value: "2s": must not be less than base`},
		"a Helm interval too short":                   {by: "helm: {interval: 1ms}", want: "helm.interval"},
		"a Helm timeout too long":                     {by: "helm: {timeout: 25h}", want: "helm.timeout"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(altered(t, tt.replace, tt.by)))
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v, want it accepted", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want it to say %s", err, tt.want)
			}
		})
	}
}

func TestEveryErrorIsToldAtOnce(t *testing.T) {
	_, err := Parse([]byte(altered(t, "10.96.0.0/16", "nowhere") + "limitFactors: {cpu: 101}\nbackoff: {base: 1ms}\n"))
	if err == nil {
		t.Fatal("three wrong fields were accepted")
	}
	for _, field := range []string{"host.serviceCIDR", "limitFactors.cpu", "backoff.base"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
}
