// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scope is the one place that says what a caller of the view may see: the CloudSpaces of one tenant, all, or nothing. It reads
// who the caller is as kube-apiserver found out, and what a Tenant's spec says about its members; never what the request asks for.
package scope
