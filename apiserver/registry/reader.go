// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/tantilium/cloud-runner/apiserver/backend"
	"github.com/tantilium/cloud-runner/apiserver/projection"
	"github.com/tantilium/cloud-runner/apiserver/scope"
)

// Reader reads one resource of the view.
type Reader struct {
	// Kind and Resource of the view.
	Kind     schema.GroupVersionKind
	Resource schema.GroupResource
	// Stored is what objects are made from, by Show.
	Stored *backend.Resource
	Show   func(*unstructured.Unstructured)
	// Scopes says what a caller may see, and Narrow what of it is meant.
	Scopes *scope.Resolver
	Narrow Narrow
}

// Narrow turns what is asked for into what of it the caller may see. With a name, one object is meant; else all, in a namespace or, with
// none, everywhere. The selector is that of the stored resource.
type Narrow func(visible scope.Scope, asked Asked) (Asked, error)

// Asked is what a request is about.
type Asked struct {
	Namespace, Name string
	Options         *internalversion.ListOptions
}

// New makes an empty object.
func (r *Reader) New() runtime.Object { return &unstructured.Unstructured{} }

// NewList makes an empty list.
func (r *Reader) NewList() runtime.Object { return &unstructured.UnstructuredList{} }

// Destroy has nothing to do.
func (r *Reader) Destroy() {}

// ConvertToTable is the request scope's.
func (r *Reader) ConvertToTable(context.Context, runtime.Object, runtime.Object) (*metav1.Table, error) {
	return nil, errors.New("tables are made by the request scope")
}

// Visible gives the caller and what the caller may see, or the error to answer with. It is the way in for every verb.
func (r *Reader) Visible(ctx context.Context, name string) (user.Info, scope.Scope, error) {
	caller, _ := request.UserFrom(ctx)
	visible, err := r.Scopes.Resolve(ctx, caller)
	if errors.Is(err, scope.ErrUnknown) {
		klog.FromContext(ctx).Error(err, "A caller was turned away")
		return nil, scope.Scope{}, apierrors.NewServiceUnavailable(scope.ErrUnknown.Error())
	}
	if err != nil {
		return nil, scope.Scope{}, apierrors.NewForbidden(r.Resource, name, err)
	}
	// What cannot be part of a path cannot be asked for, and is not there.
	if len(content.IsPathSegmentName(name))+len(content.IsPathSegmentName(request.NamespaceValue(ctx))) > 0 {
		return nil, scope.Scope{}, apierrors.NewNotFound(r.Resource, name)
	}
	return caller, visible, nil
}

// Locate gives the namespace of one object that the caller may see, or the error to answer with.
func (r *Reader) Locate(ctx context.Context, name string) (namespace string, err error) {
	_, visible, err := r.Visible(ctx, name)
	if err != nil {
		return "", err
	}
	asked, err := r.Narrow(visible, Asked{Namespace: request.NamespaceValue(ctx), Name: name})
	return asked.Namespace, err
}

// Get gives one object.
func (r *Reader) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	namespace, err := r.Locate(ctx, name)
	if err != nil {
		return nil, err
	}
	o, err := r.Stored.Get(ctx, namespace, name, options)
	if err != nil {
		return nil, projection.Error(err, r.Resource, r.Kind, name)
	}
	r.Show(o)
	return o, nil
}

// List gives the objects that the caller may see.
func (r *Reader) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	_, visible, err := r.Visible(ctx, "")
	if err != nil {
		return nil, err
	}
	namespace, stored, err := r.Selected(ctx, visible, options)
	if err != nil {
		return nil, err
	}
	list, err := r.Stored.List(ctx, namespace, stored)
	if err != nil {
		return nil, projection.Error(err, r.Resource, r.Kind, "")
	}
	r.ShowList(list)
	return list, nil
}

// Watch follows the objects that the caller may see, until the caller may not any more.
func (r *Reader) Watch(ctx context.Context, options *internalversion.ListOptions) (watch.Interface, error) {
	caller, visible, err := r.Visible(ctx, "")
	if err != nil {
		return nil, err
	}
	namespace, stored, err := r.Selected(ctx, visible, options)
	if err != nil {
		return nil, err
	}
	followed, end := r.Scopes.Follow(ctx, caller, visible)
	events, err := r.Stored.Watch(followed, namespace, stored)
	if err != nil {
		end()
		return nil, projection.Error(err, r.Resource, r.Kind, "")
	}
	flowcontrol.WatchInitialized(ctx)
	return newShown(followed, end, events, r), nil
}

// ShowList makes a list of the view.
func (r *Reader) ShowList(list *unstructured.UnstructuredList) {
	list.SetAPIVersion(r.Kind.GroupVersion().String())
	list.SetKind(r.Kind.Kind + "List")
	for i := range list.Items {
		r.Show(&list.Items[i])
	}
}

// Selected gives what is to be asked of the stored resource.
func (r *Reader) Selected(
	ctx context.Context, visible scope.Scope, options *internalversion.ListOptions,
) (namespace string, stored *metav1.ListOptions, err error) {
	asked, err := r.Narrow(visible, Asked{Namespace: request.NamespaceValue(ctx), Options: options.DeepCopy()})
	if err != nil {
		return "", nil, err
	}
	stored = &metav1.ListOptions{}
	if err := internalversion.Convert_internalversion_ListOptions_To_v1_ListOptions(asked.Options, stored, nil); err != nil {
		return "", nil, apierrors.NewBadRequest(err.Error())
	}
	return asked.Namespace, stored, nil
}
