// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

const (
	fluxChart     = "cloudspace-flux"
	fluxNamespace = "flux-system"
)

// loadChart reads a chart as Helm does before an installation.
func loadChart(t *testing.T, folder string) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(folder)
	if err != nil {
		t.Fatalf("loading chart %s: %v", folder, err)
	}
	return loaded
}

func loadFlux(t *testing.T) *chart.Chart {
	t.Helper()
	return loadChart(t, fluxChart)
}

// parseValues turns the text of a values file into what Helm merges over the chart's defaults.
func parseValues(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatalf("parsing values %q: %v", text, err)
	}
	return values
}

// renderValues validates values against the chart's schema and merges them over its defaults.
func renderValues(t *testing.T, text string) (*chart.Chart, common.Values, error) {
	t.Helper()
	loaded := loadFlux(t)
	values, err := mergeValues(t, loaded, fluxNamespace, text)
	return loaded, values, err
}

// mergeValues does that for any chart, as for a first installation in a namespace.
func mergeValues(t *testing.T, loaded *chart.Chart, namespace, text string) (common.Values, error) {
	t.Helper()
	release := common.ReleaseOptions{Name: "test", Namespace: namespace, Revision: 1, IsInstall: true}
	return commonutil.ToRenderValues(loaded, parseValues(t, text), release, common.DefaultCapabilities)
}

// renderFlux returns the objects of the chart under the given values. Fields that the Kubernetes API does not know are
// an error: a server would drop them in silence.
func renderFlux(t *testing.T, text string) []runtime.Object {
	t.Helper()
	loaded, values, err := renderValues(t, text)
	if err != nil {
		t.Fatalf("merging values: %v", err)
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		t.Fatalf("rendering: %v", err)
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var objects []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if ext := path.Ext(name); ext != ".yaml" {
			continue
		}
		for _, manifest := range releaseutil.SplitManifests(files[name]) {
			object, _, err := decoder.Decode([]byte(manifest), nil, nil)
			if err != nil {
				t.Fatalf("decoding an object of %s: %v\n%s", name, err, manifest)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

// objectsOf picks the objects of one type.
func objectsOf[T runtime.Object](objects []runtime.Object) []T {
	var picked []T
	for _, object := range objects {
		if typed, ok := object.(T); ok {
			picked = append(picked, typed)
		}
	}
	return picked
}

// renderDeployments returns the Deployments by name, and stops the test unless they are the three controllers.
func renderDeployments(t *testing.T, text string) map[string]*appsv1.Deployment {
	t.Helper()
	deployments := map[string]*appsv1.Deployment{}
	for _, deployment := range objectsOf[*appsv1.Deployment](renderFlux(t, text)) {
		deployments[deployment.Name] = deployment
	}
	got := strings.Join(slices.Sorted(maps.Keys(deployments)), " ")
	if want := "helm-controller kustomize-controller source-controller"; got != want {
		t.Fatalf("Deployments are %q, want %q", got, want)
	}
	return deployments
}

// identify names an object as kind, namespace and name, with "-" for the namespace of a cluster-scoped one.
func identify(t *testing.T, object runtime.Object) string {
	t.Helper()
	accessor, err := meta.Accessor(object)
	if err != nil {
		t.Fatalf("reading metadata: %v", err)
	}
	namespace := accessor.GetNamespace()
	if namespace == "" {
		namespace = "-"
	}
	return fmt.Sprintf("%s %s %s", object.GetObjectKind().GroupVersionKind().Kind, namespace, accessor.GetName())
}
