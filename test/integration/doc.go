// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests the custom resources and the controllers against a real kube-apiserver and etcd, which it starts
// once for all its tests from the folder that KUBEBUILDER_ASSETS names.
//
// There is no Flux, no vCluster and no kube-controller-manager here: standin_test.go does what the controllers wait for from
// them. The same journeys run with the real ones in test/e2e.
package integration
