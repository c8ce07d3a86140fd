// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the group view.kubeopera.io: what a tenant sees of its CloudSpaces, and of itself. Nothing of
// this group is stored. kubeopera-api makes each object from the CloudSpace or Tenant of the group tenancy.kubeopera.io with the same
// name, and passes on to the CloudSpace what is written.
//
// +kubebuilder:object:generate=true
// +groupName=view.kubeopera.io
package v1alpha1
