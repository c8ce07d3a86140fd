// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backend speaks to kube-apiserver's own endpoint of a stored resource: without Go types, so that nothing is lost or set to a
// default on the way, and without tries of its own, so that the caller of the view decides about those.
package backend

import (
	"context"
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/rest"
)

// Resource is kube-apiserver's endpoint of one stored resource. Namespaces are empty for resources of the cluster.
type Resource struct {
	client rest.Interface
	name   string
}

// New connects to the endpoint of a resource. Warnings of kube-apiserver are passed on to who asked.
func New(config *rest.Config, resource schema.GroupVersionResource) (*Resource, error) {
	config = rest.CopyConfig(config)
	version := resource.GroupVersion()
	config.GroupVersion = &version
	config.APIPath = "/apis"
	config.NegotiatedSerializer = untyped
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	// kube-apiserver has its own fair share for each client; a limit here would let one tenant wait for another.
	config.QPS = -1
	config.WarningHandlerWithContext = passOn{}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &Resource{client: client, name: resource.Resource}, nil
}

// Get reads one object.
func (r *Resource) Get(ctx context.Context, namespace, name string, options *metav1.GetOptions) (*unstructured.Unstructured, error) {
	return object(r.request(ctx, http.MethodGet, namespace).Name(name).VersionedParams(options, metav1.ParameterCodec).Do(ctx))
}

// List reads all objects, or a part of them.
func (r *Resource) List(ctx context.Context, namespace string, options *metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	result, err := r.request(ctx, http.MethodGet, namespace).VersionedParams(options, metav1.ParameterCodec).Do(ctx).Get()
	if err != nil {
		return nil, err
	}
	return asList(result)
}

// Watch follows changes of objects.
func (r *Resource) Watch(ctx context.Context, namespace string, options *metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return r.request(ctx, http.MethodGet, namespace).VersionedParams(options, metav1.ParameterCodec).Watch(ctx)
}

// Create makes an object.
func (r *Resource) Create(
	ctx context.Context, namespace string, body *unstructured.Unstructured, options *metav1.CreateOptions,
) (*unstructured.Unstructured, error) {
	return object(r.request(ctx, http.MethodPost, namespace).VersionedParams(options, metav1.ParameterCodec).Body(body).Do(ctx))
}

// Update replaces an object.
func (r *Resource) Update(
	ctx context.Context, namespace string, body *unstructured.Unstructured, options *metav1.UpdateOptions,
) (*unstructured.Unstructured, error) {
	return object(r.request(ctx, http.MethodPut, namespace).Name(body.GetName()).VersionedParams(options, metav1.ParameterCodec).Body(body).Do(ctx))
}

// Apply applies a configuration. The second result tells whether that made the object.
func (r *Resource) Apply(
	ctx context.Context, namespace, name string, configuration []byte, options *metav1.PatchOptions,
) (applied *unstructured.Unstructured, created bool, err error) {
	request := r.request(ctx, http.MethodPatch, namespace).Name(name).VersionedParams(options, metav1.ParameterCodec).
		SetHeader("Content-Type", string(types.ApplyYAMLPatchType)).Body(configuration)
	var code int
	applied, err = object(request.Do(ctx).StatusCode(&code))
	return applied, code == http.StatusCreated, err
}

// Delete deletes an object. What comes back is the object, when it goes later, or a Status.
func (r *Resource) Delete(ctx context.Context, namespace, name string, options *metav1.DeleteOptions) (runtime.Object, error) {
	body, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	return r.request(ctx, http.MethodDelete, namespace).Name(name).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Get()
}

// DeleteCollection deletes all objects that are selected. What comes back is a list of them, or a Status.
func (r *Resource) DeleteCollection(
	ctx context.Context, namespace string, options *metav1.DeleteOptions, selected *metav1.ListOptions,
) (runtime.Object, error) {
	body, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	return r.request(ctx, http.MethodDelete, namespace).VersionedParams(selected, metav1.ParameterCodec).
		SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Get()
}

// request begins one. It carries the caller's user agent, of which kube-apiserver makes the name of a field manager, and the audit id:
// kube-apiserver's audit log has the caller under the same id.
func (r *Resource) request(ctx context.Context, method, namespace string) *rest.Request {
	request := r.client.Verb(method).NamespaceIfScoped(namespace, namespace != "").Resource(r.name).MaxRetries(0)
	if agent := UserAgent(ctx); agent != "" {
		request.SetHeader("User-Agent", agent)
	}
	if id, found := audit.AuditIDFrom(ctx); found {
		request.SetHeader("Audit-ID", string(id))
	}
	return request
}

type userAgentKey struct{}

// WithUserAgent gives a context whose requests carry the user agent of a caller.
func WithUserAgent(ctx context.Context, agent string) context.Context {
	return context.WithValue(ctx, userAgentKey{}, agent)
}

// UserAgent of the caller, or empty.
func UserAgent(ctx context.Context) string {
	agent, _ := ctx.Value(userAgentKey{}).(string)
	return agent
}

// warningCode is that of warnings to people (RFC 9110 has it as "miscellaneous persistent warning").
const warningCode = 299

// passOn gives warnings to who asked.
type passOn struct{}

// HandleWarningHeaderWithContext adds the warning to the answer that the context belongs to.
func (passOn) HandleWarningHeaderWithContext(ctx context.Context, code int, agent, text string) {
	if code == warningCode && text != "" {
		warning.AddWarning(ctx, agent, text)
	}
}
