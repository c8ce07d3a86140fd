// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds PlatformConfig, the one file with which the operator of the platform configures
// tenant-controller. It is no API object: nothing of it is stored in a cluster but as the text of a ConfigMap.
//
// +kubebuilder:object:generate=true
// +groupName=config.kubeopera.io
package v1alpha1
