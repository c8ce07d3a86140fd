// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Reasons of events that tell of what is no phase and no condition.
const (
	// eventDrift tells of parts of a control plane that were altered or removed by hand.
	eventDrift = "DriftFound"
	// eventKubeconfigExpires warns of a kubeconfig that was not renewed.
	eventKubeconfigExpires = "KubeconfigExpires"
	// eventReleaseMended tells of a release that Flux had given up, and that the operator made it try again.
	eventReleaseMended = "ReleaseMended"
)

// announce tells, in events, of what is new in a status: each phase that is entered, each step that is proven, and what
// went wrong.
func (r *Reconciler) announce(object *v1alpha1.CloudSpace, before v1alpha1.CloudSpaceStatus) {
	if object.Status.Phase != before.Phase {
		r.event(object, phaseEventType(object.Status.Phase), string(object.Status.Phase), "the CloudSpace is "+phaseWords(object.Status.Phase))
	}
	told := map[string]bool{}
	// Stalled comes last: it repeats what a step says, and is told only where that was told before, as when a deadline passes.
	for _, c := range stalledLast(object.Status.Conditions) {
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		switch {
		case c.Type == v1alpha1.ConditionReady, c.Type == v1alpha1.ConditionReconciling, c.Reason == v1alpha1.ReasonNotConfigured:
		case c.Status == metav1.ConditionTrue && (old == nil || old.Status != c.Status) && c.Type != v1alpha1.ConditionStalled:
			r.event(object, corev1.EventTypeNormal, c.Type, "proven: "+c.Type)
		case failure(c) && (old == nil || old.Reason != c.Reason || old.Status != c.Status) && !told[c.Reason]:
			told[c.Reason] = true
			r.event(object, corev1.EventTypeWarning, c.Reason, c.Message)
		}
	}
}

func stalledLast(conditions []metav1.Condition) []metav1.Condition {
	ordered := slices.Clone(conditions)
	slices.SortStableFunc(ordered, func(a, b metav1.Condition) int {
		switch {
		case a.Type == v1alpha1.ConditionStalled && b.Type != v1alpha1.ConditionStalled:
			return 1
		case a.Type != v1alpha1.ConditionStalled && b.Type == v1alpha1.ConditionStalled:
			return -1
		default:
			return 0
		}
	})
	return ordered
}

func (r *Reconciler) event(object *v1alpha1.CloudSpace, kind, reason, message string) {
	r.Recorder.Eventf(object, nil, kind, reason, "Reconcile", "%s", message)
}

// failure tells whether a condition says that something went wrong, and not only that something is on its way.
func failure(c metav1.Condition) bool {
	if c.Type == v1alpha1.ConditionStalled {
		return c.Status == metav1.ConditionTrue
	}
	if c.Status != metav1.ConditionFalse {
		return false
	}
	switch c.Reason {
	case v1alpha1.ReasonReconcileError, v1alpha1.ReasonNotOurs, v1alpha1.ReasonUnsupportedVersion, v1alpha1.ReasonUnsupportedSize,
		v1alpha1.ReasonInstallFailed, v1alpha1.ReasonChartNotReady, v1alpha1.ReasonKubeconfigInvalid, v1alpha1.ReasonSecretsUnreadable,
		v1alpha1.ReasonPodsRefused, v1alpha1.ReasonVolumeFailed, v1alpha1.ReasonUnschedulable, v1alpha1.ReasonImagePullFailed,
		v1alpha1.ReasonContainerNotCreated, v1alpha1.ReasonCrashLooping, v1alpha1.ReasonOutOfMemory:
		return true
	default:
		return false
	}
}

func phaseEventType(phase v1alpha1.CloudSpacePhase) string {
	if phase == v1alpha1.CloudSpaceFailed {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

func phaseWords(phase v1alpha1.CloudSpacePhase) string {
	switch phase {
	case v1alpha1.CloudSpacePending:
		return "waiting to be provisioned"
	case v1alpha1.CloudSpaceProvisioning:
		return "being provisioned"
	case v1alpha1.CloudSpaceInstallingFlux:
		return "up, Flux is being installed in it"
	case v1alpha1.CloudSpaceActive:
		return "ready for use"
	case v1alpha1.CloudSpaceFailed:
		return "not provisioned; it is tried again"
	case v1alpha1.CloudSpaceSuspended:
		return "suspended"
	case v1alpha1.CloudSpaceDeleting:
		return "being deleted"
	default:
		return string(phase)
	}
}
