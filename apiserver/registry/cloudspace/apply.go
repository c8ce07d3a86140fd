// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/apiserver/projection"
	"github.com/tantilium/cloud-runner/internal/names"
)

// Apply handles apply patches. They are passed on as they are: only kube-apiserver, where the object is stored, knows which manager owns
// which of its fields.
func (s *Store) Apply(requests *handlers.RequestScope) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		applied, created, err := s.apply(req, requests.Authorizer, requests.MaxRequestBodyBytes)
		if err != nil {
			responsewriters.ErrorNegotiated(err, requests.Serializer, requests.Kind.GroupVersion(), w, req)
			return
		}
		code := http.StatusOK
		if created {
			code = http.StatusCreated
		}
		responsewriters.WriteObjectNegotiated(requests.Serializer, requests, requests.Kind.GroupVersion(), w, req, code, applied, false)
	}
}

func (s *Store) apply(req *http.Request, authz authorizer.Authorizer, limit int64) (applied *unstructured.Unstructured, created bool, err error) {
	ctx := req.Context()
	info, _ := request.RequestInfoFrom(ctx)
	namespace, err := s.Locate(request.WithNamespace(ctx, info.Namespace), info.Name)
	if err != nil {
		return nil, false, err
	}
	options, err := applyOptions(req)
	if err != nil {
		return nil, false, err
	}
	configuration, err := readConfiguration(req, limit, namespace, info.Name)
	if err != nil {
		return nil, false, err
	}
	if err := s.pinUnlessMayCreate(ctx, authz, namespace, configuration); err != nil {
		return nil, false, err
	}
	projection.StoredCloudSpace(configuration, nil)
	body, err := json.Marshal(configuration.Object)
	if err != nil {
		return nil, false, err
	}
	applied, created, err = s.Stored.Apply(ctx, namespace, info.Name, body, options)
	if err != nil {
		return nil, false, s.failure(err, info.Name)
	}
	s.Show(applied)
	return applied, created, nil
}

// pinUnlessMayCreate sees to it that who may change CloudSpaces, but not make them, makes none by applying: the configuration is then for
// the one object that is there, by its UID.
func (s *Store) pinUnlessMayCreate(ctx context.Context, authz authorizer.Authorizer, namespace string, configuration *unstructured.Unstructured) error {
	caller, _ := request.UserFrom(ctx)
	decision, reason, err := authz.Authorize(ctx, authorizer.AttributesRecord{
		User: caller, Verb: "create", APIGroup: resource.Group, APIVersion: kind.Version, Resource: resource.Resource,
		Namespace: namespace, Name: configuration.GetName(), ResourceRequest: true,
	})
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	if decision == authorizer.DecisionAllow {
		return nil
	}
	stored, err := s.Stored.Get(ctx, namespace, configuration.GetName(), &metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return apierrors.NewForbidden(resource, configuration.GetName(), errors.New("you may not create it"+because(reason)))
	}
	if err != nil {
		return s.failure(err, configuration.GetName())
	}
	uid := types.UID(names.ViewUID(string(stored.GetUID())))
	if own := configuration.GetUID(); own != "" && own != uid {
		return apierrors.NewConflict(resource, configuration.GetName(), fmt.Errorf("uid mismatch: the configuration is for %s", own))
	}
	configuration.SetUID(uid)
	return nil
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

func applyOptions(req *http.Request) (*metav1.PatchOptions, error) {
	options := &metav1.PatchOptions{}
	if err := metainternalversionscheme.ParameterCodec.DecodeParameters(req.URL.Query(), metav1.SchemeGroupVersion, options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidatePatchOptions(options, types.ApplyPatchType); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	return options, nil
}

// readConfiguration reads what is to be applied, and checks that it is about the object of the request. A key that is there twice is an
// error: the one that counts could be another one than the one that was looked at.
func readConfiguration(req *http.Request, limit int64, namespace, name string) (*unstructured.Unstructured, error) {
	body, err := io.ReadAll(io.LimitReader(req.Body, limit+1))
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if int64(len(body)) > limit {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
	}
	audit.LogRequestPatch(req.Context(), body)
	o := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(body, &o.Object); err != nil {
		return nil, apierrors.NewBadRequest("error decoding YAML: " + err.Error())
	}
	if err := checkMetadata(o); err != nil {
		return nil, err
	}
	return o, about(o, namespace, name)
}

func about(o *unstructured.Unstructured, namespace, name string) error {
	if o.GroupVersionKind() != kind {
		return apierrors.NewBadRequest(fmt.Sprintf("the kind in the configuration, %s, is not %s", o.GroupVersionKind(), kind))
	}
	if own := o.GetName(); own != "" && own != name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name in the configuration, %s, is not that of the URL, %s", own, name))
	}
	if own := o.GetNamespace(); own != "" && own != namespace {
		return apierrors.NewBadRequest(fmt.Sprintf("the namespace in the configuration, %s, is not that of the URL, %s", own, namespace))
	}
	o.SetName(name)
	o.SetNamespace(namespace)
	return nil
}
