// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/retry"
	"github.com/tantilium/cloud-runner/internal/step"
)

// Reconciler drives Tenants toward their spec.
type Reconciler struct {
	apply.Applier
	Platform *configv1alpha1.PlatformConfig
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
}

// scope is one pass over one Tenant.
type scope struct {
	object   *v1alpha1.Tenant
	owner    apply.Owner
	backoff  retry.Backoff
	observed observed
	// comeBack is when the Tenant must be looked at again, whatever becomes of the steps; zero means that a watch will tell.
	comeBack time.Duration
}

// Reconcile makes one pass: observe, run the steps, sum up.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha1.Tenant) (ctrl.Result, error) {
	s := &scope{object: object, owner: apply.Owner{Tenant: object.Name, UID: object.UID, Still: r.StillAsRead(object)}}
	if r.Memory.Behind(object) {
		return step.Result(step.ErrStale)
	}
	if !object.DeletionTimestamp.IsZero() {
		return r.takeDown(ctx, s)
	}
	s.backoff = retry.Backoff{Base: r.Platform.Backoff.Base.Duration, Max: r.Platform.Backoff.Max.Duration}
	if missing, err := r.AddFinalizer(ctx, object, v1alpha1.FinalizerTenant); missing || err != nil {
		return step.AfterFinalizer(err)
	}
	if err := r.observe(ctx, s); err != nil {
		return step.Result(err)
	}
	if err := r.passOnRequest(ctx, s); err != nil {
		return step.Result(err)
	}
	outcomes := step.Run(ctx, s, r.steps())
	return r.finish(ctx, s, outcomes)
}

// finish writes the status if the pass changed it and says when to come back.
func (r *Reconciler) finish(ctx context.Context, s *scope, outcomes []step.Outcome) (ctrl.Result, error) {
	err := step.FirstError(outcomes)
	recordError(err)
	if stale := step.FirstStale(outcomes); stale != nil {
		return step.Result(stale)
	}
	now := r.Clock.Now()
	status := newStatus(s, outcomes, now)
	if err := r.writeStatus(ctx, s.object, status); err != nil {
		return step.Result(err)
	}
	result := step.Later(ctx, outcomes)
	// When the CloudSpace is tried again is its own affair: its watch tells.
	if result.RequeueAfter == 0 && !followsCloudSpace(outcomes) {
		result.RequeueAfter = retry.Wait(status.Retry, now)
	}
	if s.comeBack > 0 && (result.RequeueAfter == 0 || s.comeBack < result.RequeueAfter) {
		result.RequeueAfter = s.comeBack
	}
	return result, nil
}

// writeStatus writes the status if it changed, and tells people of what is new in it.
func (r *Reconciler) writeStatus(ctx context.Context, object *v1alpha1.Tenant, status v1alpha1.TenantStatus) error {
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	before := object.DeepCopy()
	object.Status = status
	if err := r.PatchStatus(ctx, before, object); err != nil {
		return err
	}
	r.announce(object, before.Status)
	return nil
}
