// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// reserved begins the platform's own labels and annotations.
const reserved = "tenancy.kubeopera.io/"

// hidden tells whether an annotation is the platform's own and nobody else's business.
func hidden(annotation string) bool {
	return strings.HasPrefix(annotation, reserved) && annotation != tenancyv1alpha1.AnnotationRetryRequested
}

// showMetadata turns the metadata of a stored object into the view's. Finalizers and owners are left out: the garbage collector would act
// on them here, where nothing is stored.
func showMetadata(o *unstructured.Unstructured) {
	o.SetUID(types.UID(names.ViewUID(string(o.GetUID()))))
	o.SetFinalizers(nil)
	o.SetOwnerReferences(nil)
	if annotations := o.GetAnnotations(); annotations != nil {
		maps.DeleteFunc(annotations, func(key, _ string) bool { return hidden(key) })
		setAnnotations(o, annotations)
	}
	o.SetManagedFields(showManagedFields(o.GetManagedFields()))
}

// showManagedFields leaves out who owns a status: the view's has other fields.
func showManagedFields(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var shown []metav1.ManagedFieldsEntry
	for _, entry := range entries {
		if entry.Subresource != "" {
			continue
		}
		if entry.APIVersion == tenancyv1alpha1.SchemeGroupVersion.String() {
			entry.APIVersion = viewv1alpha1.SchemeGroupVersion.String()
		}
		shown = append(shown, entry)
	}
	return shown
}

// storeMetadata turns metadata of the view into what is stored: with all of the stored object that the view does not show, if there is
// one. Who owns which field is kept by kube-apiserver, by what changes.
func storeMetadata(o, stored *unstructured.Unstructured) {
	if stored != nil {
		o.SetFinalizers(stored.GetFinalizers())
		o.SetOwnerReferences(stored.GetOwnerReferences())
		annotations := o.GetAnnotations()
		for key, value := range stored.GetAnnotations() {
			if hidden(key) {
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations[key] = value
			}
		}
		setAnnotations(o, annotations)
	}
	o.SetManagedFields(nil)
	if uid := o.GetUID(); uid != "" {
		o.SetUID(types.UID(names.ViewUID(string(uid))))
	}
}

func setAnnotations(o *unstructured.Unstructured, annotations map[string]string) {
	if len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
}

// Malformed tells what in the metadata of an object is not of the type that it must be. Nothing else here looks at types: what cannot be
// read would pass for what is not there.
func Malformed(o *unstructured.Unstructured) error {
	metadata, found := o.Object["metadata"]
	if !found {
		return nil
	}
	fields, isObject := metadata.(object)
	if !isObject {
		return errors.New("metadata must be an object")
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &metav1.ObjectMeta{}); err != nil {
		return fmt.Errorf("metadata cannot be read: %w", err)
	}
	return nil
}

// Refused says what in the metadata of an object of the view nobody may set through the view; empty when there is nothing.
func Refused(o *unstructured.Unstructured) string {
	switch {
	case len(o.GetFinalizers()) > 0:
		return "metadata.finalizers cannot be set"
	case len(o.GetOwnerReferences()) > 0:
		return "metadata.ownerReferences cannot be set"
	}
	for key := range o.GetAnnotations() {
		if hidden(key) {
			return "annotations of the platform, " + reserved + ", cannot be set, but for retry-requested"
		}
	}
	return ""
}
