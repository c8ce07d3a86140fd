// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenantquota

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/quota"
	"github.com/tantilium/cloud-runner/internal/step"
)

// lookAgain is when a pass is repeated that found the caches and the API server to differ.
const lookAgain = time.Minute

// Reconciler keeps the ledgers of TenantQuotas.
type Reconciler struct {
	apply.Applier
	Platform *configv1alpha1.PlatformConfig
	Clock    clock.PassiveClock
}

// Reconcile makes one pass over one TenantQuota.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha1.TenantQuota) (ctrl.Result, error) {
	if r.Memory.Behind(object) {
		return step.Result(step.ErrStale)
	}
	now := r.Clock.Now()
	next, err := r.next(ctx, object, nil, now)
	if err != nil || equality.Semantic.DeepEqual(object.Status, next) {
		return ctrl.Result{}, err
	}
	return r.write(ctx, object, now)
}

// write plans again with the ledger as it stands on the API server, and writes it unless it changed meanwhile.
func (r *Reconciler) write(ctx context.Context, cached *v1alpha1.TenantQuota, now time.Time) (ctrl.Result, error) {
	live := &v1alpha1.TenantQuota{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cached), live); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	confirmed, same, err := r.confirm(ctx, live, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	result := ctrl.Result{}
	if !same {
		result.RequeueAfter = lookAgain
	}
	if equality.Semantic.DeepEqual(live.Status, confirmed) {
		return result, nil
	}
	before := live.DeepCopy()
	live.Status = confirmed
	if err := r.PatchStatus(ctx, before, live); err != nil {
		return step.Result(client.IgnoreNotFound(err))
	}
	return result, nil
}

// confirm plans until nothing is given back that the API server has not confirmed: between two plans the caches may move. It tells whether
// all that was to be given back could be.
func (r *Reconciler) confirm(ctx context.Context, live *v1alpha1.TenantQuota, now time.Time) (next v1alpha1.TenantQuotaStatus, same bool, err error) {
	asked := map[string]bool{}
	for {
		if next, err = r.next(ctx, live, asked, now); err != nil {
			return next, false, err
		}
		reduced, sure := quota.Reduced(live.Status.Reservations, next.Reservations), len(asked)
		maps.Copy(asked, reduced)
		if len(asked) == sure {
			return next, len(reduced) == len(asked), nil
		}
	}
}

// next is the status that follows from the ledger in an object and from what there is of the tenant's CloudSpaces.
func (r *Reconciler) next(ctx context.Context, object *v1alpha1.TenantQuota, confirm map[string]bool, now time.Time) (v1alpha1.TenantQuotaStatus, error) {
	claims, err := r.claims(ctx, object, confirm)
	if err != nil {
		return v1alpha1.TenantQuotaStatus{}, err
	}
	before := quota.Ledger{Reservations: object.Status.Reservations, Waiting: object.Status.Waiting}
	return newStatus(object, quota.Next(before, object.Spec.Hard, claims, now), now), nil
}
