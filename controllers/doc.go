// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controllers puts the reconcilers together: what they may cache, what they share, and how they are started.
//
//	Tenant ──────────► tenant namespace, RoleBindings, kubeconfig Secret
//	   └─► CloudSpace ► host namespace, policies ► HelmRelease (vCluster) ► kubeconfig Secret ► HelmRelease (Flux inside)
//
// Read tenant/ and cloudspace/ from their doc.go.
package controllers
