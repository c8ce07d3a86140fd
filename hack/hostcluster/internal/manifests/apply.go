// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns the fields that the driver sets.
const fieldManager = "hostcluster"

// applies is how many objects are applied at a time.
const applies = 8

// Apply brings all that Definitions (read from folder) and Objects return into the cluster, by server-side apply. It may be
// done again at any time and then changes only what differs.
func Apply(ctx context.Context, config *rest.Config, folder string) error {
	definitions, err := Definitions(folder)
	if err != nil {
		return err
	}
	rest, err := Objects()
	if err != nil {
		return err
	}
	applier, err := newApplier(config)
	if err != nil {
		return err
	}
	if err := applier.namespaces(ctx, rest); err != nil {
		return err
	}
	return applier.all(ctx, append(rest, definitions...))
}

// applier applies objects of any kind.
type applier struct {
	dynamic dynamic.Interface
	mapper  meta.RESTMapper
}

func newApplier(config *rest.Config) (*applier, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(typed.Discovery()))
	return &applier{dynamic: client, mapper: mapper}, nil
}

// namespaces come first: other objects lie in them.
func (a *applier) namespaces(ctx context.Context, objects []*unstructured.Unstructured) error {
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			found = append(found, object)
		}
	}
	return a.all(ctx, found)
}

func (a *applier) all(ctx context.Context, objects []*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(applies)
	for _, object := range objects {
		group.Go(func() error { return a.apply(ctx, object) })
	}
	return group.Wait()
}

func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return fmt.Errorf("find kind %s: %w", kind.Kind, err)
	}
	var resource dynamic.ResourceInterface = a.dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		resource = a.dynamic.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	if _, err := resource.Apply(ctx, object.GetName(), object, options); err != nil {
		return fmt.Errorf("apply %s %s: %w", kind.Kind, object.GetName(), err)
	}
	return nil
}
