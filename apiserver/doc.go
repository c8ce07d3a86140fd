// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is the view: an aggregated API server that shows each caller the CloudSpaces of the tenant in the caller's token. It
// stores nothing. k8s.io/apiserver finds out who asks and whether RBAC lets them, keeps the audit log, and tells of its health; behind
// that, scope says what the caller may see, registry serves it from kube-apiserver, and projection puts it into words for tenants.
package apiserver
