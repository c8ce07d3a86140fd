// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the group and version of the kinds in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: "view.kubeopera.io", Version: "v1alpha1"}

// SchemeBuilder collects the kinds of this package; AddToScheme adds them to a scheme.
var (
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	AddToScheme   = SchemeBuilder.AddToScheme
)

// Resource gives the group-qualified form of a resource of this group, as the generated listers need it.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &CloudSpace{}, &CloudSpaceList{}, &Account{}, &AccountList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
