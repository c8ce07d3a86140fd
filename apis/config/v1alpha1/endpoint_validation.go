// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateEndpoint(e Endpoint, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if l := e.LoadBalancer; l != nil {
		if l.Class != "" {
			errs = append(errs, invalid(path.Child("loadBalancer", "class"), l.Class, validation.IsQualifiedName(l.Class))...)
		}
		errs = append(errs, apivalidation.ValidateAnnotations(l.Annotations, path.Child("loadBalancer", "annotations"))...)
	}
	if e.Hostname != nil {
		errs = append(errs, validateHostname(e.Hostname, path.Child("hostname"))...)
	}
	return errs
}

func validateHostname(h *HostnameEndpoint, path *field.Path) field.ErrorList {
	errs := validateDNSNames(h.Domains, path.Child("domains"))
	errs = append(errs, validateDNSNames(h.Reserved, path.Child("reserved"))...)
	if h.Ingress != nil && h.TLSRoute != nil {
		errs = append(errs, field.Forbidden(path.Child("tlsRoute"), "only one of ingress and tlsRoute can be set"))
	}
	if h.Ingress != nil {
		if name := h.Ingress.ClassName; name != "" {
			errs = append(errs, invalid(path.Child("ingress", "className"), name, validation.IsDNS1123Subdomain(name))...)
		}
		errs = append(errs, apivalidation.ValidateAnnotations(h.Ingress.Annotations, path.Child("ingress", "annotations"))...)
	}
	if h.TLSRoute != nil {
		errs = append(errs, validateParentRefs(h.TLSRoute.ParentRefs, path.Child("tlsRoute", "parentRefs"))...)
	}
	return errs
}

func validateDNSNames(names []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, name := range names {
		errs = append(errs, invalid(path.Index(i), name, validation.IsDNS1123Subdomain(name))...)
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
		seen.Insert(name)
	}
	return errs
}

func validateParentRefs(refs []ParentReference, path *field.Path) field.ErrorList {
	if len(refs) == 0 {
		return field.ErrorList{field.Required(path, "at least one Gateway")}
	}
	var errs field.ErrorList
	for i, ref := range refs {
		errs = append(errs, invalid(path.Index(i).Child("namespace"), ref.Namespace, validation.IsDNS1123Label(ref.Namespace))...)
		errs = append(errs, invalid(path.Index(i).Child("name"), ref.Name, validation.IsDNS1123Subdomain(ref.Name))...)
		if ref.SectionName != "" {
			errs = append(errs, invalid(path.Index(i).Child("sectionName"), ref.SectionName, validation.IsDNS1123Subdomain(ref.SectionName))...)
		}
	}
	return errs
}

// invalid makes errors of what Kubernetes says about a name.
func invalid(path *field.Path, value string, messages []string) field.ErrorList {
	var errs field.ErrorList
	for _, message := range messages {
		errs = append(errs, field.Invalid(path, value, message))
	}
	return errs
}
