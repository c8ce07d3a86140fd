// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// All objects of one CloudSpace but the values of its chart, which have files of their own.
func TestObjectsOfACloudSpace(t *testing.T) {
	r := &Reconciler{Platform: testPlatform(t)}
	r.Platform.Charts.Advisor = &configv1alpha1.Chart{Repository: "https://charts.example.com", Name: "advisor", Version: "1.2.3+build"}
	s := grantedScope(testCloudSpace("staging"))
	s.observed.credentials = &credentials{text: []byte("kubeconfig"), internal: []byte("internal kubeconfig")}
	planned, err := r.planQuotas(s)
	if err != nil {
		t.Fatal(err)
	}
	controlPlane, err := desiredControlPlane(s, r.Platform, Values{})
	if err != nil {
		t.Fatal(err)
	}
	controlPlane.Spec.Values = nil
	fluxRelease, err := desiredInner(s, r.Platform, roleFlux, &r.Platform.Charts.Flux)
	if err != nil {
		t.Fatal(err)
	}
	advisor, err := desiredInner(s, r.Platform, roleAdvisor, r.Platform.Charts.Advisor)
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, object := range []any{
		desiredNamespace(s, r.Platform), desiredAccess(s), desiredLimits(s, planned), desiredQuota(s, sum(planned.next.total, planned.nextBeside)),
		desiredControlPlaneQuota(s, planned.next.controlPlane), desiredWorkloadQuota(s, planned.next.workloads),
		desiredRepository(roleControlPlane, &r.Platform.Charts.VCluster, r.Platform), desiredChart(roleControlPlane, &r.Platform.Charts.VCluster), controlPlane,
		desiredKubeconfig(s),
		desiredRepository(roleFlux, &r.Platform.Charts.Flux, r.Platform), desiredChart(roleFlux, &r.Platform.Charts.Flux), fluxRelease,
		desiredChart(roleAdvisor, r.Platform.Charts.Advisor), advisor,
	} {
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, string(document))
	}
	compareGolden(t, "objects.golden.yaml", []byte(strings.Join(text, "---\n")))
}

func TestValuesOfAnInnerChart(t *testing.T) {
	tests := map[string]struct {
		registry, values string
		want             string
		wantErr          string
	}{
		"nothing set":                          {want: `{}`},
		"a mirror for images":                  {registry: "mirror.example.com", want: `{"image":{"registry":"mirror.example.com"}}`},
		"values of the platform":               {values: `{"a":{"b":1}}`, want: `{"a":{"b":1}}`},
		"both, in the same map":                {registry: "mirror.example.com", values: `{"image":{"tag":"1"},"a":2}`, want: `{"a":2,"image":{"registry":"mirror.example.com","tag":"1"}}`},
		"values win over the mirror":           {registry: "mirror.example.com", values: `{"image":{"registry":"other.example.com"}}`, want: `{"image":{"registry":"other.example.com"}}`},
		"a word in place of a map replaces it": {registry: "mirror.example.com", values: `{"image":"none"}`, want: `{"image":"none"}`},
		"values that are no map are refused":   {values: `[]`, wantErr: "values of chart flux"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			platform := &configv1alpha1.PlatformConfig{Images: configv1alpha1.Images{Registry: tt.registry}}
			chart := &configv1alpha1.Chart{Name: "flux"}
			if tt.values != "" {
				chart.Values = &runtime.RawExtension{Raw: []byte(tt.values)}
			}
			got, err := innerValues(platform, chart)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %v, want it to say %s", err, tt.wantErr)
				}
				return
			}
			if err != nil || string(got.Raw) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// What the operator may ask of a CloudSpace that is not in any tenant's namespace: nothing. It must not get names either.
func TestScopeOfACloudSpace(t *testing.T) {
	tests := map[string]struct {
		namespace, name          string
		wantTenant, wantHostName string
	}{
		"in the namespace of a tenant":            {namespace: "tenant-alice-default", name: "default", wantTenant: "alice-default", wantHostName: "alice-default"},
		"another one there":                       {namespace: "tenant-alice-default", name: "staging", wantTenant: "alice-default", wantHostName: "alice-default--staging"},
		"in any other namespace":                  {namespace: "default", name: "default"},
		"in a namespace no tenant can have":       {namespace: "tenant-a--b", name: "default"},
		"under a name that the API would not let": {namespace: "tenant-a", name: "b--c"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := grantedScope(testCloudSpace(tt.name, func(c *v1alpha1.CloudSpace) { c.Namespace = tt.namespace }))
			if s.tenantID != tt.wantTenant || s.owner.Tenant != tt.wantTenant || s.names.HostName() != tt.wantHostName {
				t.Errorf("tenant %q, owner %+v, host name %q, want %q and %q", s.tenantID, s.owner, s.names.HostName(), tt.wantTenant, tt.wantHostName)
			}
		})
	}
}
