// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/conditions"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/retry"
	"github.com/tantilium/cloud-runner/internal/step"
)

// Reconciler drives CloudSpaces toward their spec.
type Reconciler struct {
	apply.Applier
	Platform *configv1alpha1.PlatformConfig
	// Kubeconfigs follows the Secrets in which vClusters write their kubeconfigs.
	Kubeconfigs *KubeconfigWatch
	// Host tells the version of the host cluster.
	Host HostVersion
	// Rollout gives control planes that run their turn to be changed.
	Rollout *Rollout
	// PullSecrets follows the platform's pull secrets and their copies.
	PullSecrets *PullSecretWatch
	// Flux looks at Flux inside a CloudSpace.
	Flux     FluxProber
	Recorder events.EventRecorder
	Clock    clock.PassiveClock

	fluxProven fluxProofs
	looks      looks
	ended      askedToEnd
}

// scope is one pass over one CloudSpace.
type scope struct {
	object *v1alpha1.CloudSpace
	owner  apply.Owner
	// tenantID is the tenant whose namespace the CloudSpace is in; empty when it is in no tenant's.
	tenantID string
	// names is the zero value when tenantID is empty.
	names names.CloudSpace
	// granted is what the CloudSpace may use of what it asks for; the step that reserves it says so.
	granted v1alpha1.CloudSpaceResources
	// retryNow says that what failed is to be begun anew in this pass; token names the try.
	retryNow bool
	token    string
	// now is when the pass began: what is due is decided once.
	now     time.Time
	backoff retry.Backoff
	// comeBack is when this CloudSpace must be looked at again, whatever becomes of the steps; zero means that a watch will tell.
	comeBack time.Duration
	// left is, by the step of the way down, what is left of it although the way down went on.
	left     map[string]string
	observed observed
	// short says why the control plane is not all that is asked for; nil when it is.
	short error
}

// reconcileNamed makes one pass over a CloudSpace as the cache has it. One that is gone is forgotten, however it went: somebody may have
// taken off its finalizer.
func (r *Reconciler) reconcileNamed(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &v1alpha1.CloudSpace{}
	switch err := r.Client.Get(ctx, request.NamespacedName, object); {
	case apierrors.IsNotFound(err):
		r.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	default:
		return r.Reconcile(ctx, object)
	}
}

// Reconcile makes one pass: observe, run the steps, sum up.
func (r *Reconciler) Reconcile(ctx context.Context, object *v1alpha1.CloudSpace) (ctrl.Result, error) {
	s := newScope(object)
	s.owner.Still = r.StillAsRead(object)
	if r.Memory.Behind(object) {
		return step.Result(step.ErrStale)
	}
	if !object.DeletionTimestamp.IsZero() {
		return r.takeDown(ctx, s)
	}
	now := r.Clock.Now()
	if wait := holdOff(object, r.backoff(), now); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	s.now, s.token, s.backoff = now, now.UTC().Format(time.RFC3339Nano), r.backoff()
	s.retryNow = retry.Due(object.Status.Retry, object.Annotations, s.backoff, now)
	if missing, err := r.AddFinalizer(ctx, object, v1alpha1.FinalizerCloudSpace); missing || err != nil {
		return step.AfterFinalizer(err)
	}
	if err := r.observe(ctx, s); err != nil {
		return step.Result(err)
	}
	outcomes := step.Run(ctx, s, r.steps())
	return r.finish(ctx, s, outcomes)
}

// holdOff is how long a CloudSpace waits before calls that failed are made again, or zero. It is kept in status, so that a
// restart of the operator does not make them all at once; a changed spec or a request ends it. What does not count for Ready holds
// nothing off.
func holdOff(object *v1alpha1.CloudSpace, backoff retry.Backoff, now time.Time) time.Duration {
	status := object.Status
	last := status.Retry.LastError
	if last == nil || last.Reason != v1alpha1.ReasonReconcileError || last.Step == v1alpha1.ConditionAdvisorReady ||
		status.ObservedGeneration != object.Generation || retry.Requested(status.Retry, object.Annotations) {
		return 0
	}
	return retry.Left(status.Retry, backoff, now)
}

// finish writes the status if the pass changed it and says when to come back.
func (r *Reconciler) finish(ctx context.Context, s *scope, outcomes []step.Outcome) (ctrl.Result, error) {
	err := step.FirstError(outcomes)
	recordError(err)
	if stale := step.FirstStale(outcomes); stale != nil {
		return step.Result(stale)
	}
	recordRetries(s.object.Status.Conditions, outcomes)
	now := s.now
	status := newStatus(s, outcomes, now)
	if err := r.writeStatus(ctx, s.object, status, now); err != nil {
		return step.Result(err)
	}
	result := step.Later(ctx, outcomes)
	result.RequeueAfter = earlier(result.RequeueAfter, conditions.NextDeadline(status.Conditions, outcomes, now))
	result.RequeueAfter = earlier(result.RequeueAfter, retry.Wait(status.Retry, now))
	result.RequeueAfter = earlier(result.RequeueAfter, nextWarning(status.Kubeconfig, now))
	result.RequeueAfter = earlier(result.RequeueAfter, usageDue(status, usageOf(s), now))
	result.RequeueAfter = earlier(result.RequeueAfter, s.comeBack)
	return result, nil
}

// writeStatus writes the status if it changed, and tells people and metrics of what is new in it.
func (r *Reconciler) writeStatus(ctx context.Context, object *v1alpha1.CloudSpace, status v1alpha1.CloudSpaceStatus, now time.Time) error {
	if equality.Semantic.DeepEqual(object.Status, status) {
		return nil
	}
	before := object.DeepCopy()
	object.Status = status
	if err := r.PatchStatus(ctx, before, object); err != nil {
		return err
	}
	r.announce(object, before.Status)
	r.warnOfExpiry(object, before.Status)
	recordTransitions(object, before.Status, now)
	return nil
}

func (r *Reconciler) backoff() retry.Backoff {
	return retry.Backoff{Base: r.Platform.Backoff.Base.Duration, Max: r.Platform.Backoff.Max.Duration}
}

func newScope(object *v1alpha1.CloudSpace) *scope {
	s := &scope{object: object, owner: apply.Owner{CloudSpace: object.Name, UID: object.UID}}
	id, ok := names.TenantID(object.Namespace)
	if !ok {
		return s
	}
	forCloudSpace, err := names.ForCloudSpace(id, object.Name)
	if err != nil {
		return s
	}
	s.tenantID, s.owner.Tenant, s.names = id, id, forCloudSpace
	return s
}

// settled tells whether all was as it should be when the CloudSpace was last looked at, and its control plane runs: what is only to be seen
// again can wait.
func (s *scope) settled() bool {
	status := &s.object.Status
	return status.ObservedGeneration == s.object.Generation && meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady) &&
		!retry.Requested(status.Retry, s.object.Annotations) && s.observed.notRunning() == ""
}

// earlier is the shorter of two waits, of which zero means none.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
