// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kinds of the group tenancy.kubeopera.io: Tenant (a customer), CloudSpace (an isolated
// Kubernetes control plane of a customer) and TenantQuota (what a customer may use).
//
// The package imports nothing of this module: everything else depends on it.
//
// +kubebuilder:object:generate=true
// +groupName=tenancy.kubeopera.io
package v1alpha1
