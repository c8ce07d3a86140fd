// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions turns the outcomes of a pass into the conditions of an object. It is pure: what is passed in decides
// what comes out.
package conditions

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// maxMessage is how long a condition's message may be: the API allows 32768 characters, a person reads fewer.
const maxMessage = 1024

// Pass is what one reconcile pass found out about an object.
type Pass struct {
	// Previous conditions: only their times, and the conditions of steps that were not reached, are carried over.
	Previous []metav1.Condition
	// Generation of the spec that the pass read.
	Generation int64
	Outcomes   []step.Outcome
	// WasReady tells that the object was ready once: from then on it is degraded, never failed or being made.
	WasReady bool
	// Restart gives the step that is not proven its whole deadline again: somebody asked for a retry.
	Restart bool
	Now     time.Time
}

// Next gives the conditions after a pass: Ready first, then Reconciling or Stalled, then one per step in order.
func Next(p Pass) []metav1.Condition {
	next := make([]metav1.Condition, 0, len(p.Outcomes)+2)
	for _, o := range p.Outcomes {
		next = append(next, p.forStep(o))
	}
	return append(p.summary(next), next...)
}

// Deleting gives the conditions after a pass of taking an object down: Ready False, Reconciling, and the conditions of the
// steps of the way up as they were last.
func Deleting(p Pass) []metav1.Condition {
	message := "deleting"
	if err := step.FirstError(p.Outcomes); err != nil {
		_, message = step.Explain(err, v1alpha1.ReasonReconcileError)
	}
	next := []metav1.Condition{
		p.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonDeleting, message),
		p.condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonDeleting, message),
	}
	for _, c := range p.Previous {
		switch c.Type {
		case v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled:
		default:
			next = append(next, c)
		}
	}
	return next
}

// Statement is a condition that is there only when True.
type Statement struct{ Type, Reason, Message string }

// Stated gives the conditions that are stated, and no other. Of the earlier ones it keeps the times.
func Stated(previous []metav1.Condition, generation int64, now time.Time, statements ...Statement) []metav1.Condition {
	p := Pass{Previous: previous, Generation: generation, Now: now}
	stated := make([]metav1.Condition, 0, len(statements))
	for _, s := range statements {
		stated = append(stated, p.condition(s.Type, metav1.ConditionTrue, s.Reason, s.Message))
	}
	return stated
}

// Message makes a text fit for a status: at most 1024 bytes, and UTF-8. Anything else would come back from the API server
// altered, or be refused by it, and each pass would write the status again.
func Message(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
}

// NextDeadline is how long it is until a step's deadline passes, or zero when none is pending.
func NextDeadline(conditions []metav1.Condition, outcomes []step.Outcome, now time.Time) time.Duration {
	for _, o := range outcomes {
		if o.Err == nil || o.Deadline == 0 || step.AtRest(o.Err) {
			continue
		}
		if c := meta.FindStatusCondition(conditions, o.Proves); c != nil && c.Status == metav1.ConditionFalse {
			return max(0, c.LastTransitionTime.Add(o.Deadline).Sub(now))
		}
	}
	return 0
}

func (p Pass) forStep(o step.Outcome) metav1.Condition {
	switch {
	case o.Skipped:
		return p.condition(o.Proves, metav1.ConditionTrue, v1alpha1.ReasonNotConfigured, "")
	case !o.Attempted:
		if previous := meta.FindStatusCondition(p.Previous, o.Proves); previous != nil {
			return *previous
		}
		return p.condition(o.Proves, metav1.ConditionUnknown, v1alpha1.ReasonNotAttempted, "")
	case o.Err != nil:
		reason, message := step.Explain(o.Err, v1alpha1.ReasonReconcileError)
		next := p.condition(o.Proves, metav1.ConditionFalse, reason, message)
		previous := meta.FindStatusCondition(p.Previous, o.Proves)
		if p.Restart || (previous != nil && mended(previous.Reason, reason)) || next.LastTransitionTime.After(p.Now) {
			// The last is of a clock that was ahead: the deadline would be as far off as that clock was wrong.
			next.LastTransitionTime = metav1.NewTime(p.Now)
		}
		return next
	default:
		return p.condition(o.Proves, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "")
	}
}

func (p Pass) summary(steps []metav1.Condition) []metav1.Condition {
	stopped, reason, message := p.stoppedAt(steps)
	switch {
	case stopped == nil:
		return []metav1.Condition{p.condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonProvisioned, "")}
	case step.AtRest(stopped.Err):
		return []metav1.Condition{p.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, reason, message)}
	case p.stalled(stopped, steps):
		return []metav1.Condition{
			p.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, p.readyReason(stopped, reason), message),
			p.condition(v1alpha1.ConditionStalled, metav1.ConditionTrue, reason, message),
		}
	default:
		return []metav1.Condition{
			p.condition(v1alpha1.ConditionReady, metav1.ConditionFalse, p.readyReason(stopped, reason), message),
			p.condition(v1alpha1.ConditionReconciling, metav1.ConditionTrue, v1alpha1.ReasonProgressing, message),
		}
	}
}

// stoppedAt gives the step that keeps the object from being ready.
func (p Pass) stoppedAt(steps []metav1.Condition) (o *step.Outcome, reason, message string) {
	for i := range p.Outcomes {
		if p.Outcomes[i].Err != nil && !p.Outcomes[i].Optional {
			return &p.Outcomes[i], steps[i].Reason, steps[i].Message
		}
	}
	return nil, "", ""
}

func (p Pass) stalled(o *step.Outcome, steps []metav1.Condition) bool {
	if step.Class(o.Err) == "Terminal" {
		return true
	}
	return o.Deadline > 0 && NextDeadline(steps, []step.Outcome{*o}, p.Now) == 0
}

func (p Pass) readyReason(stopped *step.Outcome, reason string) string {
	if p.WasReady && !stopped.Pending && reason != v1alpha1.ReasonCloudSpaceSuspended {
		return v1alpha1.ReasonDegraded
	}
	return reason
}

func (p Pass) condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	since := metav1.NewTime(p.Now)
	if previous := meta.FindStatusCondition(p.Previous, kind); previous != nil && previous.Status == status {
		since = previous.LastTransitionTime
	}
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: Message(message),
		ObservedGeneration: p.Generation, LastTransitionTime: since,
	}
}

// mended tells whether what a step could not succeed with is over, or whether it now is to do the opposite. From then on the step counts
// as tried for the first time: its deadline is for its own work, not for how long somebody took to correct a version, or to resume.
func mended(before, now string) bool {
	if (before == v1alpha1.ReasonCloudSpaceSuspended) != (now == v1alpha1.ReasonCloudSpaceSuspended) {
		return true
	}
	return v1alpha1.IsTerminalReason(before) && !v1alpha1.IsTerminalReason(now)
}
