// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/conditions"
	"github.com/tantilium/cloud-runner/internal/retry"
	"github.com/tantilium/cloud-runner/internal/step"
)

// newStatus sums up a pass. Of the earlier status it keeps the times of conditions and phases, what was observed of parts
// that this pass did not reach, and whether the CloudSpace was active once.
func newStatus(s *scope, outcomes []step.Outcome, now time.Time) v1alpha1.CloudSpaceStatus {
	previous, o := s.object.Status, s.observed
	status := *previous.DeepCopy()
	active := wasActive(previous.Timeline)
	status.ObservedGeneration = s.object.Generation
	status.Conditions = conditions.Next(conditions.Pass{
		Previous: previous.Conditions, Generation: s.object.Generation, Outcomes: outcomes, WasReady: active,
		Restart: retry.Requested(previous.Retry, s.object.Annotations), Now: now,
	})
	tellLost(status.Conditions, o)
	status.Retry = retry.Next(retry.Pass{
		Previous: previous.Retry, Annotations: s.object.Annotations, Conditions: status.Conditions, Outcomes: outcomes,
		Seed: string(s.object.UID), Backoff: s.backoff, Now: now,
	})
	if s.tenantID != "" {
		status.HostName, status.HostNamespace = s.names.HostName(), s.names.HostNamespace()
	}
	if o.running.Kubernetes != "" {
		status.Versions.Kubernetes, status.Versions.VCluster = o.running.Kubernetes, o.running.VCluster
	}
	if o.running.Flux != "" {
		status.Versions.Flux = o.running.Flux
	}
	if k := o.kubeconfig; o.credentials != nil && k != nil && k.UID != "" && s.owner.Owns(k) {
		expires := metav1.NewTime(o.credentials.expires)
		status.Endpoint = o.credentials.server
		status.Kubeconfig = v1alpha1.KubeconfigStatus{Secret: s.names.KubeconfigSecret(), Expires: &expires}
	}
	if expires := status.Kubeconfig.Expires; expires != nil {
		status.Kubeconfig.Warning = warningOf(expires.Time, now)
	}
	tellUsage(&status, usageOf(s), now)
	settled := meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionControlPlaneReady) || atRest(status.Conditions)
	status.Drift = nextDrift(previous.Drift, o.parts, settled)
	status.Phase = phase(status.Conditions, active)
	status.Timeline = conditions.Enter(previous.Timeline, string(status.Phase), s.object.CreationTimestamp, now)
	return status
}

// phase is a one-word view of the conditions; active keeps the first Active.
func phase(c []metav1.Condition, active bool) v1alpha1.CloudSpacePhase {
	isTrue := func(kind string) bool { return meta.IsStatusConditionTrue(c, kind) }
	switch {
	case atRest(c):
		return v1alpha1.CloudSpaceSuspended
	case active, isTrue(v1alpha1.ConditionReady):
		return v1alpha1.CloudSpaceActive
	case isTrue(v1alpha1.ConditionStalled):
		return v1alpha1.CloudSpaceFailed
	case isTrue(v1alpha1.ConditionKubeconfigReady):
		return v1alpha1.CloudSpaceInstallingFlux
	case isTrue(v1alpha1.ConditionQuotaReserved), isTrue(v1alpha1.ConditionNamespaceReady):
		return v1alpha1.CloudSpaceProvisioning
	default:
		return v1alpha1.CloudSpacePending
	}
}

// deletingStatus sums up a pass of taking down.
func deletingStatus(s *scope, outcomes []step.Outcome, now time.Time) v1alpha1.CloudSpaceStatus {
	status := *s.object.Status.DeepCopy()
	status.ObservedGeneration = s.object.Generation
	status.Conditions = conditions.Deleting(conditions.Pass{
		Previous: status.Conditions, Generation: s.object.Generation, Outcomes: outcomes, Now: now,
	})
	status.Deletion = nil
	for _, o := range outcomes {
		report := v1alpha1.DeletionStep{Step: o.Proves, Done: o.Attempted && o.Err == nil}
		if o.Err != nil {
			_, message := step.Explain(o.Err, v1alpha1.ReasonReconcileError)
			report.Message = conditions.Message(message)
		} else if left := s.left[o.Proves]; left != "" {
			report.Done, report.Message = false, conditions.Message(left)
		}
		status.Deletion = append(status.Deletion, report)
	}
	status.Phase = v1alpha1.CloudSpaceDeleting
	status.Timeline = conditions.Enter(status.Timeline, string(status.Phase), s.object.CreationTimestamp, now)
	return status
}

// wasActive tells whether a CloudSpace was Active once.
func wasActive(timeline []v1alpha1.PhaseTransition) bool {
	return slices.ContainsFunc(timeline, func(t v1alpha1.PhaseTransition) bool { return t.Phase == string(v1alpha1.CloudSpaceActive) })
}
