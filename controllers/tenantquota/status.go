// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenantquota

import (
	"fmt"
	"strings"
	"time"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/conditions"
	"github.com/tantilium/cloud-runner/internal/quota"
)

// newStatus tells a ledger. Of the earlier status it keeps the times of conditions.
func newStatus(object *v1alpha1.TenantQuota, ledger quota.Ledger, now time.Time) v1alpha1.TenantQuotaStatus {
	hard := object.Spec.Hard
	said := []conditions.Statement{{Type: v1alpha1.ConditionReady, Reason: v1alpha1.ReasonEnforced, Message: waiting(ledger.WaitingCount)}}
	if over := quota.Over(hard, ledger.Reserved); len(over) > 0 {
		said = append(said, conditions.Statement{
			Type: v1alpha1.ConditionOverCommitted, Reason: v1alpha1.ReasonHardLowered, Message: fmt.Sprintf(
				"more is reserved than spec.hard allows: %s; nothing is taken away, and nothing more of it is granted", quota.Text(over)),
		})
	}
	return v1alpha1.TenantQuotaStatus{
		Conditions:         conditions.Stated(object.Status.Conditions, object.Generation, now, said...),
		ObservedGeneration: object.Generation,
		Hard:               hard,
		Reserved:           ledger.Reserved,
		Free:               quota.Free(hard, ledger.Reserved),
		Usage:              usage(hard, ledger.Reserved),
		Reservations:       ledger.Reservations,
		Waiting:            ledger.Waiting,
		WaitingCount:       ledger.WaitingCount,
	}
}

func waiting(count int32) string {
	switch count {
	case 0:
		return ""
	case 1:
		return "1 CloudSpace waits for room"
	default:
		return fmt.Sprintf("%d CloudSpaces wait for room", count)
	}
}

// usage is reserved/hard, as people write it; what is not limited has no second part.
func usage(hard, reserved v1alpha1.QuotaAmounts) map[v1alpha1.QuotaResource]string {
	texts := map[v1alpha1.QuotaResource]string{}
	for _, name := range quota.Resources {
		amount := reserved[name]
		parts := []string{amount.String()}
		if limit, ok := hard[name]; ok {
			parts = append(parts, limit.String())
		}
		texts[name] = strings.Join(parts, "/")
	}
	return texts
}
