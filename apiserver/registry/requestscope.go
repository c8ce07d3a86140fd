// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers"
)

// maxBody is how large a request's body may be, in bytes: as large as kube-apiserver takes them.
const maxBody = 3 << 20

// newRequestScope tells the handlers of one resource of the view.
func newRequestScope(definition *apiextensionsv1.CustomResourceDefinition, authz authorizer.Authorizer) (*handlers.RequestScope, error) {
	version := definition.Spec.Versions[0]
	group := schema.GroupVersion{Group: definition.Spec.Group, Version: version.Name}
	table, err := tableconvertor.New(version.AdditionalPrinterColumns)
	if err != nil {
		return nil, err
	}
	none := untyped{}
	kind := group.WithKind(definition.Spec.Names.Kind)
	fields, err := managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), none, none, none, kind, group, "", nil)
	if err != nil {
		return nil, err
	}
	return &handlers.RequestScope{
		Namer: handlers.ContextBasedNaming{
			Namer: meta.NewAccessor(), ClusterScoped: definition.Spec.Scope == apiextensionsv1.ClusterScoped,
		},
		Serializer:               none,
		StandardSerializers:      none.textTypes(),
		Creater:                  none, //nolint:misspell // its name
		Convertor:                none,
		UnsafeConvertor:          none,
		Defaulter:                none,
		Typer:                    none,
		EquivalentResourceMapper: runtime.NewEquivalentResourceRegistry(),
		Authorizer:               authz,
		TableConvertor:           table,
		FieldManager:             fields,
		Resource:                 group.WithResource(definition.Spec.Names.Plural),
		Kind:                     kind,
		HubGroupVersion:          group,
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		MaxRequestBodyBytes:      maxBody,
	}, nil
}
