// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package retry decides when something that went wrong is tried again, and keeps the account of it in an object's status: a
// restart of the operator neither forgets what failed nor tries everything at once. It is pure.
//
// A failure is noticed, counted, and given a time for the next try. When that time comes, or when somebody asks for a retry, the
// object is being tried: it has no next time. A try ends by failing again, or with the step that failed being proven.
package retry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/conditions"
	"github.com/tantilium/cloud-runner/internal/step"
)

// Backoff gives the waits between tries: base, twice that, and so on up to max, each shortened or lengthened by up to a tenth.
type Backoff struct{ Base, Max time.Duration }

// jitter is the part by which a wait is shortened or lengthened at most.
const jitter = 0.1

// longest is how long a wait can be.
func (b Backoff) longest() time.Duration { return b.Max + time.Duration(jitter*float64(b.Max)) }

// Left is how long it is until the next try, or zero when there is none to come, or its time has come. A time further off than any
// wait was set by a clock that was ahead: it would hold the try off for as long as that clock was wrong, and counts as come.
func Left(status v1alpha1.RetryStatus, backoff Backoff, now time.Time) time.Duration {
	if status.NextRetryTime == nil {
		return 0
	}
	left := status.NextRetryTime.Sub(now)
	if left > backoff.longest() {
		return 0
	}
	return max(0, left)
}

// Requested tells whether a retry is asked for that was not handled yet.
func Requested(status v1alpha1.RetryStatus, annotations map[string]string) bool {
	asked := request(annotations)
	return asked != "" && asked != status.LastHandledRequest
}

// maxRequest is the longest request that a status can hold, in bytes.
const maxRequest = 256

// request is what is asked for, in a form that fits into a status: whoever may annotate an object could otherwise keep its status
// from being written.
func request(annotations map[string]string) string {
	asked := strings.ToValidUTF8(annotations[v1alpha1.AnnotationRetryRequested], "")
	if len(asked) <= maxRequest {
		return asked
	}
	sum := sha256.Sum256([]byte(asked))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Due tells whether the time of the next try has come, or somebody asks for it. Without an earlier failure nothing is due.
func Due(status v1alpha1.RetryStatus, annotations map[string]string, backoff Backoff, now time.Time) bool {
	return Requested(status, annotations) || (status.NextRetryTime != nil && Left(status, backoff, now) == 0)
}

// Pass is what one reconcile pass found out.
type Pass struct {
	Previous    v1alpha1.RetryStatus
	Annotations map[string]string
	// Conditions and Outcomes are those of this pass.
	Conditions []metav1.Condition
	Outcomes   []step.Outcome
	// Seed makes the jitter of objects differ, and that of one object the same in every pass.
	Seed    string
	Backoff Backoff
	Now     time.Time
}

// Next gives the account after a pass.
func Next(p Pass) v1alpha1.RetryStatus {
	previous, failed := p.Previous, p.failure()
	switch {
	case Requested(previous, p.Annotations):
		previous = v1alpha1.RetryStatus{LastHandledRequest: request(p.Annotations)}
	case !p.inProgress(previous), p.overtaken(previous, failed):
		previous = v1alpha1.RetryStatus{LastHandledRequest: previous.LastHandledRequest}
	}
	switch {
	case failed != nil && Left(previous, p.Backoff, p.Now) > 0:
		return p.stillFailing(previous, failed)
	case failed != nil:
		return p.count(previous, failed)
	case Left(previous, p.Backoff, p.Now) == 0:
		previous.NextRetryTime = nil
	}
	return previous
}

// Wait is when to look again for the next try after a pass that gave this account, or zero when none is to come.
func Wait(status v1alpha1.RetryStatus, now time.Time) time.Duration {
	if status.NextRetryTime == nil {
		return 0
	}
	// A try whose time has come is made at once, not never.
	return max(time.Millisecond, status.NextRetryTime.Sub(now))
}

// failure finds the step that went wrong, if one did: a call or check failed, or a deadline passed. Those that count for Ready come
// first.
func (p Pass) failure() *v1alpha1.RetryError {
	stalled := meta.IsStatusConditionTrue(p.Conditions, v1alpha1.ConditionStalled)
	for _, o := range p.Outcomes {
		if o.Err == nil || o.Optional {
			continue
		}
		class := v1alpha1.ErrorTransient
		switch {
		case step.Class(o.Err) == "Terminal":
			class = v1alpha1.ErrorTerminal
		case step.Class(o.Err) != "Transient" && !step.Failed(o.Err) && !stalled:
			return nil
		}
		return p.failed(o, class)
	}
	return p.optionalFailure()
}

// optionalFailure finds the step that went wrong without keeping the object from being ready. Nothing else brings it another try; one
// that cannot succeed, or only waits, needs none.
func (p Pass) optionalFailure() *v1alpha1.RetryError {
	for _, o := range p.Outcomes {
		if o.Optional && (step.Class(o.Err) == "Transient" || step.Failed(o.Err)) {
			return p.failed(o, v1alpha1.ErrorTransient)
		}
	}
	return nil
}

func (p Pass) failed(o step.Outcome, class v1alpha1.ErrorClass) *v1alpha1.RetryError {
	reason, message := step.Explain(o.Err, v1alpha1.ReasonReconcileError)
	return &v1alpha1.RetryError{Step: o.Proves, Reason: reason, Message: conditions.Message(message), Class: class, Time: metav1.NewTime(p.Now)}
}

// overtaken tells whether a step that counts for Ready fails while the account is that of one which does not: it does not wait for
// that one's next try.
func (p Pass) overtaken(previous v1alpha1.RetryStatus, failed *v1alpha1.RetryError) bool {
	if failed == nil || previous.LastError == nil || failed.Step == previous.LastError.Step {
		return false
	}
	for _, o := range p.Outcomes {
		if o.Proves == previous.LastError.Step {
			return o.Optional
		}
	}
	return false
}

// inProgress tells whether the step that failed last is not proven yet: its failure is not over. A step that there is none of,
// such as one of an object that is not followed any more, has no failure.
func (p Pass) inProgress(previous v1alpha1.RetryStatus) bool {
	if previous.LastError == nil {
		return false
	}
	c := meta.FindStatusCondition(p.Conditions, previous.LastError.Step)
	return c != nil && c.Status != metav1.ConditionTrue
}

// stillFailing keeps the account, and tells when it now fails with something else.
func (p Pass) stillFailing(previous v1alpha1.RetryStatus, failed *v1alpha1.RetryError) v1alpha1.RetryStatus {
	if last := previous.LastError; last != nil && last.Step == failed.Step && last.Reason == failed.Reason && last.Message == failed.Message {
		return previous
	}
	previous.LastError = failed
	return previous
}

func (p Pass) count(previous v1alpha1.RetryStatus, failed *v1alpha1.RetryError) v1alpha1.RetryStatus {
	previous.Attempts++
	previous.LastError = failed
	next := metav1.NewTime(p.Now.Add(p.wait(previous.Attempts)))
	previous.NextRetryTime = &next
	return previous
}

func (p Pass) wait(attempts int32) time.Duration {
	wait := p.Backoff.Base
	for i := int32(1); i < attempts && wait < p.Backoff.Max; i++ {
		wait *= 2
	}
	wait = min(wait, p.Backoff.Max)
	return wait + time.Duration(p.spread(attempts)*float64(wait))
}

// spread is between -jitter and jitter.
func (p Pass) spread(attempts int32) float64 {
	sum := fnv.New32a()
	_, _ = fmt.Fprintf(sum, "%s/%d", p.Seed, attempts)
	return jitter * (float64(sum.Sum32()%2001)/1000 - 1)
}
