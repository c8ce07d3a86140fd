// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package view tests the view on a real kube-apiserver, which passes requests on to two replicas of kubeopera-api with the rights that
// config/apiserver gives them. No operator runs: tests write what it would. What stands in for the cluster's network is a Service that
// leads to this machine.
package view
