// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registry serves the resources of the view. Requests are read, and answers written, by the handlers that kube-apiserver itself
// has for custom resources; in place of a store there is kube-apiserver's endpoint of the stored resource. What is asked for is narrowed to
// what the caller may see before it is passed on.
package registry
