// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package attacks is the whole of who may do what in the view: each verb of each resource that discovery tells of, on an object in each
// place, by each kind of caller, with the answer that is expected. What is served and is not in its table fails, and so does what is in
// the table and is not served. There are no exceptions.
//
// Tests run it against their kube-apiserver, where they have made what Tenants and CloudSpaces give, and say how one becomes a caller.
// Everything is a dry run: nothing is changed.
package attacks
