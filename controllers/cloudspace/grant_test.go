// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/quota"
	"github.com/tantilium/cloud-runner/internal/step"
)

func resources(cpu, memory string) v1alpha1.CloudSpaceResources {
	return v1alpha1.CloudSpaceResources{CPU: resource.MustParse(cpu), Memory: resource.MustParse(memory), Storage: resource.MustParse("10Gi"), Pods: 50}
}

func TestWhatACloudSpaceMayUse(t *testing.T) {
	reserving := func(uid string, amounts v1alpha1.CloudSpaceResources) func(*v1alpha1.TenantQuotaStatus) {
		return func(status *v1alpha1.TenantQuotaStatus) {
			status.Reservations = []v1alpha1.QuotaReservation{{CloudSpace: "default", UID: uid, Generation: 2, Amounts: quota.Of(amounts)}}
		}
	}
	waiting := func(missing string) func(*v1alpha1.TenantQuotaStatus) {
		return func(status *v1alpha1.TenantQuotaStatus) {
			status.Waiting = []v1alpha1.QuotaWaiting{{CloudSpace: "default", UID: "uid-1"}}
			if missing != "" {
				status.Waiting[0].Missing = v1alpha1.QuotaAmounts{v1alpha1.QuotaCPU: resource.MustParse(missing)}
			}
			status.WaitingCount = 1
		}
	}
	hostQuota := func(uid, cpu string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelOwnerUID: uid}},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
				corev1.ResourceRequestsCPU: resource.MustParse(cpu), corev1.ResourceRequestsMemory: resource.MustParse("4Gi"),
				corev1.ResourceRequestsStorage: resource.MustParse("10Gi"), corev1.ResourcePods: resource.MustParse("50"),
			}},
		}
	}
	asked := resources("4", "4Gi")
	tests := map[string]struct {
		ledger func(*v1alpha1.TenantQuotaStatus)
		host   *corev1.ResourceQuota
		// generation of the spec; 2 is the one that the ledger has counted.
		generation int64
		// wantCPU is what is granted; empty for nothing at all.
		wantCPU, wantReason, wantMessage string
		// goesOn tells that the steps after it run all the same.
		goesOn bool
	}{
		"there is no ledger yet":             {wantReason: v1alpha1.ReasonQuotaPending, wantMessage: "waiting for the tenant's quota to be reserved"},
		"all is reserved":                    {ledger: reserving("uid-1", asked), wantCPU: "4", goesOn: true},
		"more is reserved than is asked for": {ledger: reserving("uid-1", resources("5", "8Gi")), wantCPU: "4", goesOn: true},
		"less is reserved: it goes on with that": {
			ledger: reserving("uid-1", resources("3", "8Gi")), wantCPU: "3", goesOn: true,
			wantReason: v1alpha1.ReasonQuotaPending, wantMessage: "waiting for the tenant's quota to be reserved",
		},
		"a reservation of another one of the same name is not its own": {
			ledger: reserving("uid-0", asked), wantReason: v1alpha1.ReasonQuotaPending, wantMessage: "waiting for the tenant's quota to be reserved",
		},
		"it waits": {ledger: waiting("1500m"), wantReason: v1alpha1.ReasonQuotaExhausted, wantMessage: "waiting for room in the tenant's quota: missing is cpu 1500m"},
		"it waits for an earlier one of the same name": {
			ledger: waiting(""), wantReason: v1alpha1.ReasonQuotaExhausted, wantMessage: "waiting for namespace vcluster-alice-default to go, which is left of an earlier CloudSpace of the same name",
		},
		"it waits behind many others": {
			ledger:     func(status *v1alpha1.TenantQuotaStatus) { status.WaitingCount = 21 },
			wantReason: v1alpha1.ReasonQuotaExhausted, wantMessage: "waiting for room in the tenant's quota, after others that wait longer",
		},
		"it asks for more than the quota has in all": {
			ledger: func(status *v1alpha1.TenantQuotaStatus) {
				status.Hard = v1alpha1.QuotaAmounts{v1alpha1.QuotaCPU: resource.MustParse("3")}
			},
			wantReason: v1alpha1.ReasonQuotaExhausted, wantMessage: "waiting for a larger quota: what is asked for is more than the tenant's has in all, by cpu 1",
		},
		"enough is reserved, for an earlier spec: it keeps what it has": {
			ledger: reserving("uid-1", asked), generation: 3, host: hostQuota("uid-1", "2"), wantCPU: "2", goesOn: true,
			wantReason: v1alpha1.ReasonQuotaPending, wantMessage: "waiting for the tenant's quota to be reserved",
		},
		"enough is reserved, for an earlier spec: it creates nothing": {
			ledger: reserving("uid-1", asked), generation: 3,
			wantReason: v1alpha1.ReasonQuotaPending, wantMessage: "waiting for the tenant's quota to be reserved",
		},
		"a later spec that asks for no more than it has": {
			ledger: reserving("uid-1", asked), generation: 3, host: hostQuota("uid-1", "4"), wantCPU: "4", goesOn: true,
		},
		"it has more than is reserved: it gives that back": {
			ledger: reserving("uid-1", resources("1", "4Gi")), generation: 3, host: hostQuota("uid-1", "4"), wantCPU: "1", goesOn: true,
			wantReason: v1alpha1.ReasonQuotaPending, wantMessage: "waiting for the tenant's quota to be reserved",
		},
		"the ledger was lost, and it has something": {
			host: hostQuota("uid-1", "2"), wantCPU: "2", goesOn: true,
			wantReason: v1alpha1.ReasonQuotaPending, wantMessage: "waiting for the tenant's quota to be reserved",
		},
		"the ledger was lost, and what stands under its name is not its own": {
			host: hostQuota("uid-0", "2"), wantReason: v1alpha1.ReasonQuotaPending, wantMessage: "waiting for the tenant's quota to be reserved",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScope(testCloudSpace("default", func(c *v1alpha1.CloudSpace) {
				c.UID, c.Generation, c.Spec.Resources = "uid-1", max(tt.generation, 2), asked
			}))
			s.observed.quotas.total = tt.host
			if tt.ledger != nil {
				s.observed.tenantQuota = &v1alpha1.TenantQuota{}
				tt.ledger(&s.observed.tenantQuota.Status)
			}
			outcomes := step.Run(t.Context(), s, []step.Step[*scope]{{
				Proves: v1alpha1.ConditionQuotaReserved, Do: func(_ context.Context, s *scope) error { return s.takeGrant() },
			}, {Proves: "Next", Do: func(context.Context, *scope) error { return nil }}})
			if outcomes[1].Attempted != tt.goesOn {
				t.Errorf("it goes on: %v, want %v", outcomes[1].Attempted, tt.goesOn)
			}
			cpu := ""
			if s.granted.Pods > 0 {
				cpu = s.granted.CPU.String()
			}
			if cpu != tt.wantCPU {
				t.Errorf("granted are %q, want %q", cpu, tt.wantCPU)
			}
			checkExplained(t, outcomes[0].Err, tt.wantReason, tt.wantMessage)
		})
	}
}

func checkExplained(t *testing.T, err error, reason, message string) {
	t.Helper()
	if err == nil {
		if reason != "" {
			t.Errorf("no error, want %s", reason)
		}
		return
	}
	gotReason, gotMessage := step.Explain(err, "")
	if gotReason != reason || gotMessage != message || step.Class(err) != "Wait" {
		t.Errorf("got %s %s: %q, want Wait %s: %q", step.Class(err), gotReason, gotMessage, reason, message)
	}
}

func TestWhomALedgerWakes(t *testing.T) {
	has := func(name, cpu string) v1alpha1.QuotaReservation {
		return v1alpha1.QuotaReservation{CloudSpace: name, UID: "uid-" + name, Amounts: quota.Of(resources(cpu, "4Gi"))}
	}
	waits := func(name, cpu string) v1alpha1.QuotaWaiting {
		return v1alpha1.QuotaWaiting{CloudSpace: name, UID: "uid-" + name, Missing: quota.Of(resources(cpu, "4Gi"))}
	}
	before := v1alpha1.TenantQuotaStatus{
		Reservations: []v1alpha1.QuotaReservation{has("same", "1"), has("more", "1"), has("gone", "1")},
		Waiting:      []v1alpha1.QuotaWaiting{waits("more", "1"), waits("granted", "1"), waits("still", "1"), waits("less-is-missing", "2")},
	}
	after := v1alpha1.TenantQuotaStatus{
		Reservations: []v1alpha1.QuotaReservation{has("same", "1"), has("more", "2"), has("granted", "1")},
		Waiting:      []v1alpha1.QuotaWaiting{waits("still", "1"), waits("less-is-missing", "1"), waits("new", "1")},
	}
	got := slices.Sorted(maps.Keys(ledgerDifference(before, after)))
	if diff := cmp.Diff([]string{"gone", "granted", "less-is-missing", "more", "new"}, got); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}
