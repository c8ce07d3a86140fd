// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tenant gives a Tenant its namespace, its members their rights in it, and its default CloudSpace, and takes all of
// it down again.
//
//	condition         objects it makes, and where
//	NamespaceReady    Namespace tenant-<id>
//	QuotaConfigured   TenantQuota <id>, where no administrator made one
//	AccessConfigured  RoleBindings cloudspace-owner, cloudspace-editor and cloudspace-viewer in that namespace
//	CloudSpaceReady   CloudSpace default in that namespace, and a ResourceQuota that bounds how many there can be
//	KubeconfigReady   Secret tenant-<id>-kubeconfig in kubeopera-system
//
// The files are those of package cloudspace, with the same meaning.
package tenant
