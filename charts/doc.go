// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts holds the Helm charts that the operator installs, and proves them with Helm's own library.
//
// It is a module of its own, so that Helm stays out of the operator's dependencies, and it names the versions of Flux's
// API modules that hack/generate-flux-crds.sh generates the CRDs of cloudspace-flux from.
package charts
