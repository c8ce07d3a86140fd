// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package account serves Accounts of the view: a Tenant as its members see it. They are read-only.
package account

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
	"github.com/tantilium/cloud-runner/apiserver/backend"
	"github.com/tantilium/cloud-runner/apiserver/projection"
	"github.com/tantilium/cloud-runner/apiserver/registry"
	"github.com/tantilium/cloud-runner/apiserver/scope"
)

var (
	resource = viewv1alpha1.Resource("accounts")
	kind     = viewv1alpha1.SchemeGroupVersion.WithKind("Account")
)

// Store reads Accounts.
type Store struct {
	registry.Reader
}

// NewStore serves stored Tenants to those that the resolver lets see them.
func NewStore(tenants *backend.Resource, scopes *scope.Resolver) *Store {
	return &Store{registry.Reader{
		Kind: kind, Resource: resource, Stored: tenants, Show: projection.Account, Scopes: scopes, Narrow: narrow,
	}}
}

// narrow keeps members of a tenant to their own account.
func narrow(visible scope.Scope, asked registry.Asked) (registry.Asked, error) {
	if visible.All() {
		return asked, nil
	}
	if asked.Options == nil {
		if asked.Name != visible.Tenant() {
			return asked, apierrors.NewNotFound(resource, asked.Name)
		}
		return asked, nil
	}
	own := fields.OneTermEqualSelector("metadata.name", visible.Tenant())
	if asked.Options.FieldSelector != nil {
		own = fields.AndSelectors(own, asked.Options.FieldSelector)
	}
	asked.Options.FieldSelector = own
	return asked, nil
}
