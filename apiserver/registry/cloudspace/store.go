// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cloudspace serves CloudSpaces of the view: reads are those of the registry; writes go through to the stored CloudSpace.
package cloudspace

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
	"github.com/tantilium/cloud-runner/apiserver/backend"
	"github.com/tantilium/cloud-runner/apiserver/projection"
	"github.com/tantilium/cloud-runner/apiserver/registry"
	"github.com/tantilium/cloud-runner/apiserver/scope"
	"github.com/tantilium/cloud-runner/internal/names"
)

var (
	resource = viewv1alpha1.Resource("cloudspaces")
	kind     = viewv1alpha1.SchemeGroupVersion.WithKind("CloudSpace")
)

// maxTries bounds how often an update is tried that met a newer object.
const maxTries = 5

// Store reads and writes CloudSpaces.
type Store struct {
	registry.Reader
}

// NewStore serves what is stored to those that the resolver lets see it.
func NewStore(stored *backend.Resource, scopes *scope.Resolver) *Store {
	return &Store{registry.Reader{
		Kind: kind, Resource: resource, Stored: stored, Show: projection.CloudSpace, Scopes: scopes, Narrow: narrow,
	}}
}

// Create makes a CloudSpace.
func (s *Store) Create(ctx context.Context, o runtime.Object, _ rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	asked, err := asObject(o)
	if err != nil {
		return nil, err
	}
	namespace, err := s.place(ctx, asked.GetName())
	if err != nil {
		return nil, err
	}
	if err := checkMetadata(asked); err != nil {
		return nil, err
	}
	projection.StoredCloudSpace(asked, nil)
	created, err := s.Stored.Create(ctx, namespace, asked, options)
	return s.answer(created, err, asked.GetName())
}

// place gives the namespace to make a CloudSpace in.
func (s *Store) place(ctx context.Context, name string) (string, error) {
	namespace := request.NamespaceValue(ctx)
	if namespace == "" {
		return "", apierrors.NewBadRequest("a CloudSpace is made in a namespace")
	}
	_, visible, err := s.Visible(ctx, name)
	if err != nil {
		return "", err
	}
	asked, err := s.Narrow(visible, registry.Asked{Namespace: namespace})
	return asked.Namespace, err
}

// Update replaces a CloudSpace by what it is to be, which may follow from what it is.
//
//nolint:revive // the arguments are those of rest.Updater
func (s *Store) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc,
	_ bool, options *metav1.UpdateOptions,
) (updated runtime.Object, created bool, err error) {
	namespace, err := s.Locate(ctx, name)
	if err != nil {
		return nil, false, err
	}
	for range maxTries {
		var again bool
		updated, again, err = s.update(ctx, namespace, name, info, options)
		if !again {
			break
		}
	}
	return updated, false, err
}

// update tries once. It is worth another try if the object was changed meanwhile, and the client did not ask for just that version.
func (s *Store) update(
	ctx context.Context, namespace, name string, info rest.UpdatedObjectInfo, options *metav1.UpdateOptions,
) (updated runtime.Object, again bool, err error) {
	stored, err := s.Stored.Get(ctx, namespace, name, &metav1.GetOptions{})
	if err != nil {
		return nil, false, s.failure(err, name)
	}
	live := stored.DeepCopy()
	s.Show(live)
	o, err := info.UpdatedObject(ctx, live)
	if err != nil {
		return nil, false, err
	}
	asked, err := asObject(o)
	if err != nil {
		return nil, false, err
	}
	if err := checkMetadata(asked); err != nil {
		return nil, false, err
	}
	current := asked.GetResourceVersion() == stored.GetResourceVersion()
	projection.StoredCloudSpace(asked, stored)
	result, err := s.Stored.Update(ctx, namespace, asked, options)
	again = apierrors.IsConflict(err) && current
	updated, err = s.answer(result, err, name)
	return updated, again, err
}

// Delete deletes a CloudSpace. It goes when all of it is taken down.
func (s *Store) Delete(
	ctx context.Context, name string, _ rest.ValidateObjectFunc, options *metav1.DeleteOptions,
) (deleted runtime.Object, immediately bool, err error) {
	namespace, err := s.Locate(ctx, name)
	if err != nil {
		return nil, false, err
	}
	result, err := s.Stored.Delete(ctx, namespace, name, storedPreconditions(options))
	if err != nil {
		return nil, false, s.failure(err, name)
	}
	if o, ok := result.(*unstructured.Unstructured); ok {
		s.Show(o)
		return o, false, nil
	}
	return s.showStatus(result, name), true, nil
}

// DeleteCollection deletes the CloudSpaces that are selected, of those that the caller may see.
func (s *Store) DeleteCollection(
	ctx context.Context, _ rest.ValidateObjectFunc, options *metav1.DeleteOptions, selected *internalversion.ListOptions,
) (runtime.Object, error) {
	_, visible, err := s.Visible(ctx, "")
	if err != nil {
		return nil, err
	}
	namespace, stored, err := s.Selected(ctx, visible, selected)
	if err != nil {
		return nil, err
	}
	result, err := s.Stored.DeleteCollection(ctx, namespace, storedPreconditions(options), stored)
	if err != nil {
		return nil, s.failure(err, "")
	}
	if list, ok := result.(*unstructured.UnstructuredList); ok {
		s.ShowList(list)
		return list, nil
	}
	return s.showStatus(result, ""), nil
}

// answer shows what kube-apiserver answered.
func (s *Store) answer(stored *unstructured.Unstructured, err error, name string) (runtime.Object, error) {
	if err != nil {
		return nil, s.failure(err, name)
	}
	s.Show(stored)
	return stored, nil
}

func (s *Store) failure(err error, name string) error {
	return projection.Error(err, resource, kind, name)
}

func (s *Store) showStatus(result runtime.Object, name string) runtime.Object {
	if status, ok := result.(*metav1.Status); ok {
		return projection.Status(status, resource, kind, name)
	}
	return result
}

// storedPreconditions are those of the client, about the stored object.
func storedPreconditions(options *metav1.DeleteOptions) *metav1.DeleteOptions {
	options = options.DeepCopy()
	if options.Preconditions != nil && options.Preconditions.UID != nil {
		uid := types.UID(names.ViewUID(string(*options.Preconditions.UID)))
		options.Preconditions.UID = &uid
	}
	return options
}

// checkMetadata refuses what no object can have and what a tenant cannot set, before anything is asked of kube-apiserver.
func checkMetadata(o *unstructured.Unstructured) error {
	if err := projection.Malformed(o); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if refused := projection.Refused(o); refused != "" {
		return apierrors.NewForbidden(resource, o.GetName(), errors.New(refused))
	}
	return nil
}

func asObject(o runtime.Object) (*unstructured.Unstructured, error) {
	asked, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a CloudSpace: %T", o))
	}
	if asked.GetKind() != kind.Kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the kind in the data, %s, is not %s", asked.GetKind(), kind.Kind))
	}
	return asked, nil
}
