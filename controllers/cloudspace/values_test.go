// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Every change of these files restarts every control plane that has been made before.
func TestValuesOfTheVClusterChart(t *testing.T) {
	tests := map[string]struct {
		name     string
		spec     func(*v1alpha1.CloudSpace)
		platform func(*configv1alpha1.PlatformConfig)
	}{
		"values-default.golden.yaml": {name: "default"},
		"values-staging-medium.golden.yaml": {name: "staging", spec: func(c *v1alpha1.CloudSpace) {
			c.Spec.KubernetesVersion = "v1.35.0"
			c.Spec.Resources.CPU, c.Spec.Resources.Memory = resource.MustParse("4"), resource.MustParse("8Gi")
			c.Spec.ControlPlane = v1alpha1.ControlPlane{Size: "Medium", Etcd: v1alpha1.Etcd{Storage: resource.MustParse("8Gi"), StorageClassName: "fast"}}
		}},
		"values-loadbalancer.golden.yaml": {name: "default", spec: func(c *v1alpha1.CloudSpace) {
			c.Spec.Endpoint.Type = "LoadBalancer"
		}, platform: func(p *configv1alpha1.PlatformConfig) {
			p.Endpoint.LoadBalancer = &configv1alpha1.LoadBalancerEndpoint{Class: "example.com/internal", Annotations: map[string]string{"example.com/a": "b"}}
		}},
		"values-hostname.golden.yaml": {name: "default", spec: func(c *v1alpha1.CloudSpace) {
			c.Spec.Endpoint = v1alpha1.Endpoint{Type: "Hostname", Hostname: "alice.spaces.example.com"}
		}},
		"values-highavailability.golden.yaml": {name: "staging", spec: func(c *v1alpha1.CloudSpace) {
			c.Spec.Resources.CPU = resource.MustParse("4")
			c.Spec.ControlPlane.HighAvailability = true
		}},
		"values-mirror.golden.yaml": {name: "default", platform: func(p *configv1alpha1.PlatformConfig) {
			p.Images.Registry = "mirror.example.com/hub"
		}},
		"values-private.golden.yaml": {name: "default", platform: func(p *configv1alpha1.PlatformConfig) {
			p.Images = configv1alpha1.Images{Registry: "mirror.example.com", PullSecrets: []string{"mirror", "other"}, WorkloadsUsePullSecrets: true}
		}},
	}
	for golden, tt := range tests {
		t.Run(golden, func(t *testing.T) {
			r := &Reconciler{Platform: testPlatform(t)}
			if tt.platform != nil {
				tt.platform(r.Platform)
			}
			object := testCloudSpace(tt.name)
			if tt.spec != nil {
				tt.spec(object)
			}
			version, size, err := r.offered(object.Spec)
			if err != nil {
				t.Fatal(err)
			}
			values := desiredValues(grantedScope(object).names, object.Spec, version, size, r.Platform)
			text, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, golden, text)
		})
	}
}

func TestTheSameCloudSpaceAlwaysHasTheSameValues(t *testing.T) {
	r := &Reconciler{Platform: testPlatform(t)}
	object := testCloudSpace("default")
	render := func() string {
		version, size, err := r.offered(object.Spec)
		if err != nil {
			t.Fatal(err)
		}
		release, err := desiredControlPlane(grantedScope(object), r.Platform, desiredValues(newScope(object).names, object.Spec, version, size, r.Platform))
		if err != nil {
			t.Fatal(err)
		}
		return string(release.Spec.Values.Raw)
	}
	first := render()
	for range 20 {
		if again := render(); again != first {
			t.Fatalf("rendered %s, then %s", first, again)
		}
	}
	// What does not concern the control plane must not restart it.
	object.Spec.DisplayName, object.Spec.Resources.CPU, object.Spec.Resources.Pods = "Alice", resource.MustParse("64"), 9
	if again := render(); again != first {
		t.Errorf("another name and other resources gave other values:\n%s\n%s", first, again)
	}
}

// docs/install.md lists what is to be mirrored, and leaves out nothing that the shipped PlatformConfig leads to.
func TestTheDocsListTheImagesOfControlPlanes(t *testing.T) {
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	platform, err := configv1alpha1.Load(filepath.Join("..", "..", "config", "manager", "platform-config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	n := grantedScope(testCloudSpace("default")).names
	for _, version := range platform.Kubernetes {
		values := desiredValues(n, v1alpha1.CloudSpaceSpec{}, version, platform.Sizes["Small"], platform).ControlPlane
		images := []string{values.CoreDNS.Deployment.Image}
		for _, image := range []ImageValues{values.StatefulSet.Image, values.Distro.K8s.Image, values.BackingStore.Etcd.Deploy.StatefulSet.Image} {
			images = append(images, image.Registry+"/"+image.Repository+":"+image.Tag)
		}
		for _, image := range images {
			if !strings.Contains(string(docs), "`"+image+"`") {
				t.Errorf("docs/install.md does not list %s", image)
			}
		}
	}
}
