// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tenantquota keeps the ledger of each tenant in the status of its TenantQuota: which of its CloudSpaces may use what, and which
// wait. The ledger is the only grant. A CloudSpace takes up no more than its reservation says, and creates nothing without one.
//
// A pass plans with what the caches have. When that changes nothing, it ends there. Otherwise the ledger is read from the API server and
// written with its resource version, so that of two writers one fails and plans again: the sum of grants never is more than the quota
// that the same object has. What is to be given back is confirmed by the API server first. A cache that is behind can then only grant
// later, to one that is gone already, or give back later.
//
// reconciler.go has the pass, observe.go what there is of each CloudSpace, status.go what is told; the arithmetic is package quota's.
package tenantquota
