// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/conditions"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/retry"
	"github.com/tantilium/cloud-runner/internal/step"
)

// newStatus sums up a pass. Of the earlier status it keeps the times of conditions and phases, and whether the Tenant was
// ready once.
func newStatus(s *scope, outcomes []step.Outcome, now time.Time) v1alpha1.TenantStatus {
	previous, o := s.object.Status, s.observed
	status := *previous.DeepCopy()
	wasReady := entered(previous.Timeline, v1alpha1.TenantReady)
	status.ObservedGeneration = s.object.Generation
	status.Conditions = conditions.Next(conditions.Pass{
		Previous: previous.Conditions, Generation: s.object.Generation, Outcomes: outcomes, WasReady: wasReady,
		Restart: retry.Requested(previous.Retry, s.object.Annotations), Now: now,
	})
	status.Retry = newRetry(s, status.Conditions, outcomes, now)
	if n := o.namespace; n != nil && n.UID != "" && s.owner.Owns(n) {
		status.Namespace, status.NamespaceUID = n.Name, string(n.UID)
	}
	if k := o.kubeconfig; k != nil && k.UID != "" && s.owner.Owns(k) {
		status.KubeconfigSecret = names.TenantKubeconfigSecret(s.object.Name)
	} else if k == nil && o.cloudSpace != nil && !hasKubeconfig(o.cloudSpace) {
		status.KubeconfigSecret = ""
	}
	status.CloudSpaces = count(o.cloudSpaces)
	if o.cloudSpace == nil || o.cloudSpace.Status.Phase != "" {
		// Before, the ledger is about to change, twice in a moment: it is told together with what the CloudSpace says first.
		status.Quota = sums(o.quota)
	}
	status.Phase = phase(status, o.cloudSpace, wasReady)
	status.Timeline = conditions.Enter(previous.Timeline, string(status.Phase), s.object.CreationTimestamp, now)
	return status
}

// newRetry is the account of what went wrong: the CloudSpace's own, where the Tenant waits for that.
func newRetry(s *scope, c []metav1.Condition, outcomes []step.Outcome, now time.Time) v1alpha1.RetryStatus {
	own := retry.Next(retry.Pass{
		Previous: s.object.Status.Retry, Annotations: s.object.Annotations, Conditions: c, Outcomes: outcomes,
		Seed: string(s.object.UID), Backoff: s.backoff, Now: now,
	})
	if s.observed.cloudSpace == nil || !followsCloudSpace(outcomes) {
		return own
	}
	followed := *s.observed.cloudSpace.Status.Retry.DeepCopy()
	followed.LastHandledRequest = own.LastHandledRequest
	return followed
}

// followsCloudSpace tells whether the Tenant waits for what the CloudSpace says of itself. That it cannot be made, or not be
// altered, is the Tenant's own failure.
func followsCloudSpace(outcomes []step.Outcome) bool {
	for _, o := range outcomes {
		if o.Proves == v1alpha1.ConditionCloudSpaceReady && o.Err != nil {
			reason, _ := step.Explain(o.Err, v1alpha1.ReasonReconcileError)
			return step.Class(o.Err) != "Transient" && reason != v1alpha1.ReasonInvalidTemplate
		}
	}
	return false
}

// deletingStatus sums up a pass of taking down.
func deletingStatus(s *scope, outcomes []step.Outcome, now time.Time) v1alpha1.TenantStatus {
	status := *s.object.Status.DeepCopy()
	status.ObservedGeneration = s.object.Generation
	status.Conditions = conditions.Deleting(conditions.Pass{
		Previous: status.Conditions, Generation: s.object.Generation, Outcomes: outcomes, Now: now,
	})
	status.CloudSpaces = count(s.observed.cloudSpaces)
	status.Quota = v1alpha1.QuotaSums{}
	if len(s.observed.cloudSpaces) > 0 {
		status.Quota = sums(s.observed.quota)
	}
	status.Phase = v1alpha1.TenantDeleting
	status.Timeline = conditions.Enter(status.Timeline, string(status.Phase), s.object.CreationTimestamp, now)
	return status
}

// phase follows the default CloudSpace. Ready also needs the Tenant's own steps, and the first Ready is kept.
func phase(status v1alpha1.TenantStatus, cloudSpace *v1alpha1.CloudSpace, wasReady bool) v1alpha1.TenantPhase {
	switch {
	case cloudSpace != nil && cloudSpace.Status.Phase == v1alpha1.CloudSpaceSuspended:
		return v1alpha1.TenantSuspended
	case wasReady, meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionReady):
		return v1alpha1.TenantReady
	case meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionStalled):
		return v1alpha1.TenantFailed
	case cloudSpace == nil:
		return v1alpha1.TenantPending
	}
	switch cloudSpace.Status.Phase {
	case v1alpha1.CloudSpaceActive, v1alpha1.CloudSpaceInstallingFlux:
		return v1alpha1.TenantInstallingFlux
	case v1alpha1.CloudSpaceProvisioning, v1alpha1.CloudSpaceFailed:
		return v1alpha1.TenantProvisioning
	default:
		return v1alpha1.TenantPending
	}
}

func count(cloudSpaces []v1alpha1.CloudSpace) v1alpha1.CloudSpaceCounts {
	var counts v1alpha1.CloudSpaceCounts
	for i := range cloudSpaces {
		counts.Total++
		if cloudSpaces[i].Status.Phase == v1alpha1.CloudSpaceActive {
			counts.Active++
		}
	}
	return counts
}

// sums are those that a ledger tells. The TenantQuota under the name of a Tenant is the one that counts for it, whoever made it.
func sums(quota *v1alpha1.TenantQuota) v1alpha1.QuotaSums {
	if quota == nil {
		return v1alpha1.QuotaSums{}
	}
	ledger := quota.Status.DeepCopy()
	return v1alpha1.QuotaSums{Hard: ledger.Hard, Reserved: ledger.Reserved, Free: ledger.Free}
}

func entered(timeline []v1alpha1.PhaseTransition, phase v1alpha1.TenantPhase) bool {
	for _, t := range timeline {
		if t.Phase == string(phase) {
			return true
		}
	}
	return false
}
