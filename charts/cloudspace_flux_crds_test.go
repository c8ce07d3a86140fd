// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/Masterminds/semver/v3"
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"helm.sh/helm/v4/pkg/chart/common"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// servedKinds lists what the controllers register and list, which is what they serve. A kind without a list type, such
// as metav1's options, is no resource.
func servedKinds(t *testing.T) []string {
	t.Helper()
	flux := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{sourcev1.AddToScheme, kustomizev1.AddToScheme, helmv2.AddToScheme} {
		if err := add(flux); err != nil {
			t.Fatalf("registering Flux's types: %v", err)
		}
	}
	groups := []schema.GroupVersion{sourcev1.GroupVersion, kustomizev1.GroupVersion, helmv2.GroupVersion}
	var kinds []string
	for _, group := range groups {
		registered := flux.KnownTypes(group)
		for kind := range registered {
			if _, listed := registered[kind+"List"]; listed {
				kinds = append(kinds, group.WithKind(kind).String())
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

// chartCRDs decodes the CRDs that Helm installs with the chart, and refuses fields the API does not know.
func chartCRDs(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var crds []apiextensionsv1.CustomResourceDefinition
	for _, file := range loadFlux(t).CRDObjects() {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(file.File.Data, &crd); err != nil {
			t.Fatalf("decoding %s: %v", file.Name, err)
		}
		crds = append(crds, crd)
	}
	return crds
}

func TestFluxCRDsAreExactlyTheKindsTheControllersServe(t *testing.T) {
	var got []string
	for _, crd := range chartCRDs(t) {
		for _, version := range crd.Spec.Versions {
			if version.Served {
				gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
				got = append(got, gvk.String())
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(servedKinds(t), got); diff != "" {
		t.Errorf("served kinds differ (-controllers +CRDs); hack/generate-flux-crds.sh writes them anew:\n%s", diff)
	}
}

func TestFluxCRDsStoreTheVersionTheControllersWrite(t *testing.T) {
	want := map[string]string{
		sourcev1.GroupVersion.Group:    sourcev1.GroupVersion.Version,
		kustomizev1.GroupVersion.Group: kustomizev1.GroupVersion.Version,
		helmv2.GroupVersion.Group:      helmv2.GroupVersion.Version,
	}
	for _, crd := range chartCRDs(t) {
		for _, version := range crd.Spec.Versions {
			if version.Storage && version.Name != want[crd.Spec.Group] {
				t.Errorf("%s stores version %s, want %s", crd.Name, version.Name, want[crd.Spec.Group])
			}
			if version.Subresources == nil || version.Subresources.Status == nil {
				t.Errorf("%s has no status subresource in version %s", crd.Name, version.Name)
			}
		}
	}
}

// A controller meets CRDs of its own release line, never older than itself: an API module may be a patch ahead.
func TestFluxImagesBelongToTheReleaseLineOfTheirCRDs(t *testing.T) {
	content, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatalf("reading the module file: %v", err)
	}
	module, err := modfile.Parse("go.mod", content, nil)
	if err != nil {
		t.Fatalf("parsing the module file: %v", err)
	}
	apis := map[string]string{}
	for _, require := range module.Require {
		apis[require.Mod.Path] = require.Mod.Version
	}
	values := common.Values(loadFlux(t).Values)
	controllers := map[string]string{
		"sourceController":    "github.com/fluxcd/source-controller/api",
		"kustomizeController": "github.com/fluxcd/kustomize-controller/api",
		"helmController":      "github.com/fluxcd/helm-controller/api",
	}
	for key, module := range controllers {
		tag, err := values.PathValue(key + ".tag")
		if err != nil {
			t.Fatalf("reading the tag of %s: %v", key, err)
		}
		image, api := semver.MustParse(fmt.Sprint(tag)), semver.MustParse(apis[module])
		if image.Major() != api.Major() || image.Minor() != api.Minor() || image.GreaterThan(api) {
			t.Errorf("%s runs %s, its CRDs come from %s %s", key, tag, module, apis[module])
		}
	}
}
