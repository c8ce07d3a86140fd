// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak holds a long test of the real host cluster: CloudSpaces are created, broken, mended and deleted in a loop, while
// the operator, Flux and the API server are killed at random. Every one must end Active or gone, nothing may be left over, and
// the operator's memory must stay flat. "make soak" runs it; docs/performance.md has its figures.
package soak
