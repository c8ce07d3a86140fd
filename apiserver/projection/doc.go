// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package projection makes objects of the view from stored ones, and back. It is pure, and works on JSON without Go types: what it does
// not know passes through unchanged.
package projection
