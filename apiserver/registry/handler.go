// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"mime"
	"net/http"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/tantilium/cloud-runner/apiserver/backend"
	viewschema "github.com/tantilium/cloud-runner/apiserver/schema"
)

// ReadStore is what a resource that is read-only has.
type ReadStore interface {
	rest.Getter
	rest.Lister
	rest.Watcher
}

// Store is what a resource has that can be written too.
type Store interface {
	ReadStore
	rest.Creater //nolint:misspell // its name
	rest.Patcher
	rest.GracefulDeleter
	rest.CollectionDeleter
	// Apply handles apply patches.
	Apply(*handlers.RequestScope) http.HandlerFunc
}

// Verbs that a store serves, as discovery tells them.
func Verbs(store ReadStore) []string {
	if _, ok := store.(Store); ok {
		return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	}
	return []string{"get", "list", "watch"}
}

// Handler serves the resources of the view, behind the filters that find out who asks and whether RBAC lets them.
type Handler struct {
	resources         map[string]served
	minRequestTimeout time.Duration
}

type served struct {
	store      ReadStore
	requests   *handlers.RequestScope
	namespaced bool
}

// NewHandler serves each resource from its store. A watch ends after minRequestTimeout at the earliest, twice that at the latest, if the
// client does not say.
func NewHandler(
	definitions map[string]*viewschema.Definition, stores map[string]ReadStore, authz authorizer.Authorizer, minRequestTimeout time.Duration,
) (*Handler, error) {
	h := &Handler{resources: map[string]served{}, minRequestTimeout: minRequestTimeout}
	for name, store := range stores {
		requests, err := newRequestScope(definitions[name], authz)
		if err != nil {
			return nil, err
		}
		h.resources[name] = served{store, requests, definitions[name].Spec.Scope == apiextensionsv1.NamespaceScoped}
	}
	return h, nil
}

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	info, found := request.RequestInfoFrom(req.Context())
	if !found || !info.IsResourceRequest {
		http.NotFound(w, req)
		return
	}
	resource, found := h.resources[info.Resource]
	if !found || info.Subresource != "" || len(info.Parts) > maxParts || info.Namespace != "" && !resource.namespaced {
		refuse(w, req, info, apierrors.NewGenericServerResponse(http.StatusNotFound, info.Verb, groupResource(info), info.Name, "", 0, true))
		return
	}
	handle := h.handler(resource, info, req)
	if handle == nil || misplaced(info) {
		refuse(w, req, info, apierrors.NewMethodNotSupported(groupResource(info), info.Verb))
		return
	}
	req = req.WithContext(backend.WithUserAgent(req.Context(), req.UserAgent()))
	metrics.InstrumentHandlerFunc(info.Verb, info.APIGroup, info.APIVersion, info.Resource, "", metrics.CleanScope(info), metrics.APIServerComponent,
		false, "", handle)(w, req)
}

// misplaced tells that one object is to be made at another's place, or changed without saying which: rights are given by what the path says.
func misplaced(info *request.RequestInfo) bool {
	switch info.Verb {
	case "create":
		return info.Name != ""
	case "update", "patch":
		return info.Name == ""
	default:
		return false
	}
}

// maxParts of a path: the resource and a name.
const maxParts = 2

// handler gives what serves a verb, or nil.
func (h *Handler) handler(r served, info *request.RequestInfo, req *http.Request) http.HandlerFunc {
	switch info.Verb {
	case "get":
		return handlers.GetResource(r.store, r.requests)
	case "list":
		return handlers.ListResource(r.store, r.store, r.requests, false, h.minRequestTimeout)
	case "watch":
		return handlers.ListResource(r.store, r.store, r.requests, true, h.minRequestTimeout)
	}
	store, writable := r.store.(Store)
	if !writable {
		return nil
	}
	switch info.Verb {
	case "create":
		return handlers.CreateResource(store, r.requests, nil)
	case "update":
		return handlers.UpdateResource(store, r.requests, nil)
	case "patch":
		return patch(store, r.requests, req)
	case "delete":
		return handlers.DeleteResource(store, true, r.requests, nil)
	case "deletecollection":
		return handlers.DeleteCollection(store, true, r.requests, nil)
	default:
		return nil
	}
}

// patch gives what serves a kind of patch. There is no strategic merge patch, as of all resources that are stored without Go types.
func patch(store Store, requests *handlers.RequestScope, req *http.Request) http.HandlerFunc {
	content, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err == nil && types.PatchType(content) == types.ApplyPatchType {
		return store.Apply(requests)
	}
	return handlers.PatchResource(store, requests, nil, []string{string(types.JSONPatchType), string(types.MergePatchType)})
}

func refuse(w http.ResponseWriter, req *http.Request, info *request.RequestInfo, err error) {
	responsewriters.ErrorNegotiated(err, metaCodecs, schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, req)
}

func groupResource(info *request.RequestInfo) schema.GroupResource {
	return schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
}
