// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the journeys of customers and administrators on the local host cluster: real Kubernetes, real Flux, real
// vCluster, and the platform as it is shipped. Nothing is imitated. Run them with "make test-e2e"; the build tag is e2e.
//
// The journeys share their CloudSpaces, since each takes most of a minute to start, and run in the order of journeys_test.go:
// those that disturb one CloudSpace all at once, those that disturb the platform one after the other.
package e2e
