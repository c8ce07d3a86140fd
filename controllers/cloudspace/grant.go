// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"fmt"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/quota"
	"github.com/tantilium/cloud-runner/internal/step"
)

// reserveQuota takes up what the ledger of the tenant grants. The Tenant is the one whose namespace the CloudSpace is in: the namespace
// must carry the tenant's label, which is reserved to administrators, not only the name.
func (r *Reconciler) reserveQuota(_ context.Context, s *scope) error {
	if s.tenantID == "" {
		return step.Terminal(v1alpha1.ReasonTenantNotFound, "a CloudSpace must be in the namespace of a Tenant, tenant-<id>")
	}
	o := s.observed
	if o.tenant == nil || !o.tenant.DeletionTimestamp.IsZero() {
		return step.Wait(v1alpha1.ReasonTenantNotFound, fmt.Sprintf("waiting for Tenant %s", s.tenantID))
	}
	if o.tenantNamespace == nil || o.tenantNamespace.Labels[v1alpha1.LabelTenant] != s.tenantID {
		return step.Wait(v1alpha1.ReasonTenantNotFound, fmt.Sprintf("waiting for namespace %s to become that of Tenant %s", s.object.Namespace, s.tenantID))
	}
	return s.takeGrant()
}

// takeGrant gives a CloudSpace as much as is reserved for it of what it asks for. Without a reservation it creates nothing. One that has
// something already goes on with that while it waits for more, or for its ledger to be made anew.
func (s *scope) takeGrant() error {
	asked := s.object.Spec.Resources
	s.granted = quota.Granted(asked, s.usable())
	if quota.Covers(quota.Of(s.granted), quota.Of(asked)) {
		return nil
	}
	waits := s.waitsForQuota()
	if s.granted.Pods > 0 {
		return step.Advisory(waits)
	}
	return waits
}

// usable is what is reserved. It is no more than the CloudSpace has already until the ledger has counted the very spec that asks for more: what
// was reserved for an earlier one may be about to be given to others.
func (s *scope) usable() v1alpha1.QuotaAmounts {
	reservation, reserved := quota.Reservation(s.observed.ledger().Reservations, string(s.object.UID))
	if reserved && reservation.Generation >= s.object.Generation {
		return reservation.Amounts
	}
	total := s.observed.quotas.total
	switch {
	case total == nil || !s.owner.Owns(total):
		return nil
	case reserved:
		return quota.Lesser(reservation.Amounts, quota.Held(total))
	default:
		return quota.Held(total)
	}
}

// waitsForQuota says what a CloudSpace waits for. A watch on the ledger tells when that comes.
func (s *scope) waitsForQuota() error {
	ledger, asks := s.observed.ledger(), quota.Of(s.object.Spec.Resources)
	if over := quota.Over(ledger.Hard, asks); len(over) > 0 {
		return step.Wait(v1alpha1.ReasonQuotaExhausted, "waiting for a larger quota: what is asked for is more than the tenant's has in all, by "+quota.Text(over))
	}
	for _, waiting := range ledger.Waiting {
		switch {
		case waiting.UID != string(s.object.UID):
		case len(waiting.Missing) == 0:
			return step.Wait(v1alpha1.ReasonQuotaExhausted, fmt.Sprintf("waiting for namespace %s to go, which is left of an earlier CloudSpace of the same name", s.names.HostNamespace()))
		default:
			return step.Wait(v1alpha1.ReasonQuotaExhausted, "waiting for room in the tenant's quota: missing is "+quota.Text(waiting.Missing))
		}
	}
	if int(ledger.WaitingCount) > len(ledger.Waiting) {
		return step.Wait(v1alpha1.ReasonQuotaExhausted, "waiting for room in the tenant's quota, after others that wait longer")
	}
	return step.Wait(v1alpha1.ReasonQuotaPending, "waiting for the tenant's quota to be reserved")
}

// ledger is that of the tenant; empty when there is none.
func (o *observed) ledger() v1alpha1.TenantQuotaStatus {
	if o.tenantQuota == nil {
		return v1alpha1.TenantQuotaStatus{}
	}
	return o.tenantQuota.Status
}

// hasRoom tells whether what is granted has room for a control plane. When what is asked for would have, the rest is waited for.
func (s *scope) hasRoom(size configv1alpha1.Size, factors configv1alpha1.LimitFactors) error {
	asked := s.object.Spec
	short := fits(s.granted, asked.ControlPlane, size, factors)
	if short != nil && fits(asked.Resources, asked.ControlPlane, size, factors) == nil {
		return s.waitsForQuota()
	}
	return short
}
