// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	platformChart     = "cloud-runner"
	platformNamespace = "kubeopera-system"
)

// keep is what makes an object outlive its release.
const keep = "helm.sh/resource-policy"

// renderPlatform returns the objects of the chart under the given values, by kind and name.
func renderPlatform(t *testing.T, namespace, text string) (map[string]*unstructured.Unstructured, error) {
	t.Helper()
	loaded := loadChart(t, platformChart)
	values, err := mergeValues(t, loaded, namespace, text)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		return nil, err
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Ext(name) == ".yaml" {
			maps.Copy(objects, parseManifests(t, files[name]))
		}
	}
	return objects, nil
}

func mustRenderPlatform(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	objects, err := renderPlatform(t, platformNamespace, text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// parseManifests reads objects from a stream. The hash of its contents in a ConfigMap's name is left out: kustomize and Helm count
// differently.
func parseManifests(t *testing.T, text string) map[string]*unstructured.Unstructured {
	t.Helper()
	text = regexp.MustCompile(`(name: tenant-controller)-[0-9a-z]{10}\n`).ReplaceAllString(text, "$1\n")
	objects := map[string]*unstructured.Unstructured{}
	for _, manifest := range releaseutil.SplitManifests(text) {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(manifest), &object.Object); err != nil {
			t.Fatalf("parsing: %v\n%s", err, manifest)
		}
		if len(object.Object) == 0 {
			continue
		}
		key := identify(t, object)
		if objects[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		objects[key] = object
	}
	return objects
}

// kustomized are the objects of config/default.
func kustomized(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../dist/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parseManifests(t, string(text))
}

func TestPlatformChartInstallsWhatKustomizeDoes(t *testing.T) {
	want, got := kustomized(t), mustRenderPlatform(t, "")
	// helm install --create-namespace makes it; part of the release, it would take all control planes with it at the end.
	delete(want, "Namespace - "+platformNamespace)
	for _, object := range got {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", keep)
		if len(object.GetAnnotations()) == 0 {
			unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
		}
	}
	for _, objects := range []map[string]*unstructured.Unstructured{want, got} {
		parsePlatformConfig(t, objects)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config/default (-) and charts/cloud-runner (+) differ:\n%s", diff)
	}
}

// parsePlatformConfig replaces the text in the ConfigMap, which has comments in one place and not in the other, by what it says.
func parsePlatformConfig(t *testing.T, objects map[string]*unstructured.Unstructured) {
	t.Helper()
	object := objects["ConfigMap "+platformNamespace+" tenant-controller"]
	if object == nil {
		t.Fatal("no ConfigMap with the PlatformConfig")
	}
	text, _, _ := unstructured.NestedString(object.Object, "data", "platform-config.yaml")
	parsed := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &parsed); err != nil {
		t.Fatalf("parsing the PlatformConfig: %v\n%s", err, text)
	}
	object.Object["data"] = parsed
}

func TestPlatformChartKeepsWhatTenantsNeed(t *testing.T) {
	for name, object := range mustRenderPlatform(t, "") {
		kept := object.GetAnnotations()[keep] == "keep"
		isCore := object.GetKind() != "Role" && object.GetKind() != "RoleBinding" && slices.Contains([]string{object.GetName(), object.GetNamespace()}, "kubeopera-core")
		// The view goes with the release, its APIService first: Kubernetes ends no namespace while nobody answers for it.
		isCore = isCore && !strings.HasPrefix(object.GetName(), "kubeopera-api")
		want := isCore || slices.Contains([]string{"CustomResourceDefinition", "PriorityClass"}, object.GetKind())
		if kept != want {
			t.Errorf("%s: kept at the end of the release: %t, want %t", name, kept, want)
		}
	}
	for name, object := range mustRenderPlatform(t, "crds: {keep: false}") {
		if object.GetKind() == "CustomResourceDefinition" && object.GetAnnotations()[keep] != "" {
			t.Errorf("%s is kept although crds.keep is false", name)
		}
	}
}

func TestPlatformChartLeavesOutWhatIsSwitchedOff(t *testing.T) {
	for value, off := range map[string]string{
		"crds: {install: false}":            "CustomResourceDefinition ",
		"priorityClasses: {install: false}": "PriorityClass ",
		"metrics: {enabled: false}":         "Service kubeopera-system ",
	} {
		for name := range mustRenderPlatform(t, value) {
			if strings.HasPrefix(name, off) {
				t.Errorf("%s: %s is there", value, name)
			}
		}
	}
}

func TestPlatformChartValuesReachTheDeployment(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	for _, test := range []struct {
		name, values string
		path         []string
		want         any
	}{
		{"tag", "image: {registry: mirror.example.com/a, tag: v9}", []string{"containers", "image"}, "mirror.example.com/a/tantilium/tenant-controller:v9"},
		{"digest", "image: {digest: '" + digest + "'}", []string{"containers", "image"}, "ghcr.io/tantilium/tenant-controller@" + digest},
		{"pull policy", "image: {pullPolicy: Always}", []string{"containers", "imagePullPolicy"}, "Always"},
		{"pull secrets", "imagePullSecrets: [{name: a}]", []string{"imagePullSecrets"}, []any{map[string]any{"name": "a"}}},
		{"node selector", "nodeSelector: {a: b}", []string{"nodeSelector"}, map[string]any{"a": "b"}},
		{"tolerations", "tolerations: [{operator: Exists}]", []string{"tolerations"}, []any{map[string]any{"operator": "Exists"}}},
		{"affinity", "affinity: {nodeAffinity: {}}", []string{"affinity"}, map[string]any{"nodeAffinity": map[string]any{}}},
		{"priority", "priorityClassName: a", []string{"priorityClassName"}, "a"},
		{"resources", "resources: {requests: {cpu: 1m}}", []string{"containers", "resources", "requests", "cpu"}, "1m"},
		{
			"arguments", "{metrics: {enabled: false}, logVerbosity: 2, requestLimits: {perSecond: 2000, burst: 30}}",
			[]string{"containers", "args"},
			[]any{"run", "--config=/etc/tenant-controller/platform-config.yaml", "--metrics-address=0", "--kube-api-qps=2000", "--kube-api-burst=30", "--verbosity=2"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			deployment := mustRenderPlatform(t, test.values)["Deployment "+platformNamespace+" tenant-controller"]
			pod, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
			if test.path[0] == "containers" {
				containers, _, _ := unstructured.NestedSlice(pod, "containers")
				pod = map[string]any{"containers": containers[0]}
			}
			got, _, _ := unstructured.NestedFieldNoCopy(pod, test.path...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s:\n%s", strings.Join(test.path, "."), diff)
			}
		})
	}
}

// The resolver is part of the platform, but its image is one of those that a mirror for CloudSpaces has.
func TestTheResolverIsPulledFromTheMirror(t *testing.T) {
	deployment := mustRenderPlatform(t, "{platformConfig: {images: {registry: mirror.example.com/a}}, imagePullSecrets: [{name: b}]}")["Deployment kubeopera-core cloudspace-resolver"]
	pod, _, _ := unstructured.NestedMap(deployment.Object, "spec", "template", "spec")
	containers, _, _ := unstructured.NestedSlice(pod, "containers")
	if got := containers[0].(map[string]any)["image"]; got != "mirror.example.com/a/coredns/coredns:1.14.2" {
		t.Errorf("its image is %v", got)
	}
	if diff := cmp.Diff([]any{map[string]any{"name": "b"}}, pod["imagePullSecrets"]); diff != "" {
		t.Errorf("its pull secrets:\n%s", diff)
	}
}

// The view's image is of the operator's registry, and by digest where there is one.
func TestTheViewsImage(t *testing.T) {
	for values, want := range map[string]string{
		"": "ghcr.io/tantilium/kubeopera-api:v0.1.0",
		"{image: {registry: mirror.example.com}, view: {image: {repository: a/b, tag: c}}}": "mirror.example.com/a/b:c",
		"view: {image: {digest: 'sha256:" + strings.Repeat("0", 64) + "'}}":                 "ghcr.io/tantilium/kubeopera-api@sha256:" + strings.Repeat("0", 64),
	} {
		deployment := mustRenderPlatform(t, values)["Deployment kubeopera-core kubeopera-api"]
		containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		if got := containers[0].(map[string]any)["image"]; got != want {
			t.Errorf("%s: its image is %v", values, got)
		}
	}
}

func TestPlatformConfigValuesAreLaidOverTheDefaults(t *testing.T) {
	objects := mustRenderPlatform(t, "platformConfig: {host: {serviceCIDR: 172.20.0.0/16}, sizes: {Large: null}}")
	parsePlatformConfig(t, objects)
	config := objects["ConfigMap "+platformNamespace+" tenant-controller"].Object["data"]
	got := fmt.Sprint(config)
	for _, want := range []string{"serviceCIDR:172.20.0.0/16", "Medium:", "https://charts.loft.sh"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if strings.Contains(got, "Large:") {
		t.Errorf("Large is still in %s", got)
	}
}

func TestPlatformChartRefusesBadValues(t *testing.T) {
	for _, values := range []string{
		"imgae: {}", "image: {pullPolicy: Sometimes}", "image: {digest: 'sha256:1'}", "image: {tag: 'a b'}", "image: {registry: 'https://a'}",
		"replicas: -1", "replicas: many", "requestLimits: {perSecond: -1}", "requestLimits: {qps: 1}", "imagePullSecrets: [a]", "crds: {keep: 1}", "crds: {install: false, kep: true}",
		"platformConfig: {kind: Other}", "platformConfig: {kubernetes: []}", "platformConfig: {sizes: {Small: null}}", "platformConfig: {charts: {vcluster: {}}, host: {}, sizes: []}",
	} {
		if _, err := renderPlatform(t, platformNamespace, values); err == nil {
			t.Errorf("%s is accepted", values)
		}
	}
}

func TestPlatformChartIsForOneNamespace(t *testing.T) {
	_, err := renderPlatform(t, "default", "")
	if err == nil || !strings.Contains(err.Error(), "--namespace kubeopera-system") {
		t.Errorf("error is %v, want one that names the namespace", err)
	}
}
