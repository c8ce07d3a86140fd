// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"

	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
	"github.com/tantilium/cloud-runner/apiserver/registry"
	"github.com/tantilium/cloud-runner/apiserver/schema"
)

var group = viewv1alpha1.SchemeGroupVersion

// discover tells clients which resources there are: in the form of before, and in the one for all groups at once.
func discover(server *genericapiserver.GenericAPIServer, definitions map[string]*schema.Definition, stores map[string]registry.ReadStore) {
	version := metav1.GroupVersionForDiscovery{GroupVersion: group.String(), Version: group.Version}
	apiGroup := metav1.APIGroup{Name: group.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	server.DiscoveryGroupManager.AddGroup(apiGroup)

	var resources []metav1.APIResource
	aggregated := apidiscoveryv2.APIVersionDiscovery{Version: group.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
	// In an order that all replicas have: else what clients remember would be new to them at each other replica.
	for _, name := range slices.Sorted(maps.Keys(stores)) {
		one := apiResource(definitions[name], registry.Verbs(stores[name]))
		resources = append(resources, one)
		aggregated.Resources = append(aggregated.Resources, aggregatedResource(&one))
	}
	server.AggregatedDiscoveryGroupManager.AddGroupVersion(group.Group, aggregated)

	mux := server.Handler.NonGoRestfulMux
	list := discovery.APIResourceListerFunc(func() []metav1.APIResource { return resources })
	mux.Handle(groupPath, discovery.NewAPIGroupHandler(codecs, apiGroup))
	mux.Handle(versionPath, discovery.NewAPIVersionHandler(codecs, group, list))
}

var (
	groupPath   = genericapiserver.APIGroupPrefix + "/" + group.Group
	versionPath = groupPath + "/" + group.Version
)

func apiResource(definition *schema.Definition, verbs []string) metav1.APIResource {
	names := definition.Spec.Names
	return metav1.APIResource{
		Name: names.Plural, SingularName: names.Singular, Kind: names.Kind, ShortNames: names.ShortNames, Categories: names.Categories,
		Namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped, Verbs: verbs,
	}
}

func aggregatedResource(resource *metav1.APIResource) apidiscoveryv2.APIResourceDiscovery {
	scope := apidiscoveryv2.ScopeCluster
	if resource.Namespaced {
		scope = apidiscoveryv2.ScopeNamespace
	}
	return apidiscoveryv2.APIResourceDiscovery{
		Resource:         resource.Name,
		ResponseKind:     &metav1.GroupVersionKind{Group: group.Group, Version: group.Version, Kind: resource.Kind},
		Scope:            scope,
		SingularResource: resource.SingularName,
		Verbs:            resource.Verbs,
		ShortNames:       resource.ShortNames,
		Categories:       resource.Categories,
	}
}

// describe publishes what the fields of each resource mean, and what can be done with it.
func describe(server *genericapiserver.GenericAPIServer, definitions map[string]*schema.Definition, stores map[string]registry.ReadStore) error {
	v2, err := schema.OpenAPIV2(definitions)
	if err != nil {
		return err
	}
	v3, err := schema.OpenAPIV3(definitions)
	if err != nil {
		return err
	}
	for path, item := range v2.Paths.Paths {
		if isReadOnly(path, stores) {
			item.Post, item.Put, item.Patch, item.Delete = nil, nil, nil, nil
			v2.Paths.Paths[path] = item
		}
	}
	for path, item := range v3.Paths.Paths {
		if isReadOnly(path, stores) {
			item.Post, item.Put, item.Patch, item.Delete = nil, nil, nil, nil
		}
	}
	mux := server.Handler.NonGoRestfulMux
	handler.NewOpenAPIService(v2).RegisterOpenAPIVersionedService("/openapi/v2", mux)
	service := handler3.NewOpenAPIService()
	service.UpdateGroupVersion("apis/"+group.String(), v3)
	return service.RegisterOpenAPIV3VersionedService("/openapi/v3", mux)
}

// isReadOnly tells whether a path is of a resource that is read-only: definitions do not say so.
func isReadOnly(path string, stores map[string]registry.ReadStore) bool {
	parts := strings.Split(path, "/")
	for name, store := range stores {
		if _, writable := store.(registry.Store); !writable && slices.Contains(parts, name) {
			return true
		}
	}
	return false
}
