// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package step runs the ordered steps of a reconcile pass and gives the error of a step its meaning, in one place:
//
//	nil              the step is proven; the next one runs
//	Wait(...)        normal, not yet: a watch or a timer brings the next pass
//	Rest(...)        not, because that was asked for: nothing goes on
//	Failure(...)     what was on its way went wrong: it is begun anew, with exponential backoff
//	Terminal(...)    cannot succeed until something outside changes
//	a conflict       our view was stale: nothing is concluded, the next pass reads again
//	any other error  transient: tried again with exponential backoff
package step

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// StaleRetry is how soon a pass that met a stale view is repeated.
	StaleRetry = 100 * time.Millisecond
	// PastRetry is how soon one is repeated that met ErrPast, should no watch tell: a cache that lost its API server can take half a
	// minute to find it again, and each pass asks.
	PastRetry = 2 * time.Second
)

// ErrStale says that the cache has not caught up with what stands on the API server.
var ErrStale = errors.New("the cache is behind the API server")

// ErrPast says that what a pass is for is not there any more as the cache has it. Nothing is done for it before the cache has caught up.
var ErrPast = fmt.Errorf("it is not there as it was read: %w", ErrStale)

// ErrUnseen says that what stands on the API server was not seen yet. Nothing is concluded, and whoever looks tells when it is seen.
var ErrUnseen = errors.New("what stands on the API server was not seen yet")

// Step is one small, idempotent piece of work on a scope S. Its outcome is one condition.
type Step[S any] struct {
	// Proves is the condition type.
	Proves string
	// Do does the work, or returns the error that says why it is not done.
	Do func(context.Context, S) error
	// Deadline after which a step that is not proven counts as failed; zero means never. It is counted from the time the
	// condition became False.
	Deadline time.Duration
	// Optional steps do not count for Ready, and the ones after them run all the same.
	Optional bool
	// Pending tells that the step proves a change: while it is not proven, what was there before it works on. Ready then has the
	// step's reason, and is not called degraded.
	Pending bool
	// Skip leaves the step out: there is nothing to do and nothing to prove.
	Skip bool
}

// Outcome is what became of one step in a pass.
type Outcome struct {
	Proves    string
	Attempted bool
	Err       error
	Deadline  time.Duration
	Optional  bool
	Pending   bool
	Skipped   bool
}

// Run runs the steps in order and stops at the first that is not proven and counts for Ready. There is an outcome for every step.
func Run[S any](ctx context.Context, scope S, steps []Step[S]) []Outcome {
	outcomes := make([]Outcome, 0, len(steps))
	stopped := false
	for _, s := range steps {
		outcome := Outcome{Proves: s.Proves, Deadline: s.Deadline, Optional: s.Optional, Pending: s.Pending, Skipped: s.Skip}
		if !stopped && !s.Skip {
			outcome.Attempted = true
			outcome.Err = s.Do(ctx, scope)
			outcome.Optional = s.Optional || advisory(outcome.Err)
			stopped = outcome.Err != nil && !outcome.Optional
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

// FirstError is the error of the first step that is not proven, or nil.
func FirstError(outcomes []Outcome) error {
	for _, o := range outcomes {
		if o.Err != nil {
			return o.Err
		}
	}
	return nil
}

// FirstStale is the error of the first step that met a stale view, also of one that does not count, or nil.
func FirstStale(outcomes []Outcome) error {
	for _, o := range outcomes {
		if Class(o.Err) == "Stale" {
			return o.Err
		}
	}
	return nil
}

// WaitError says that something is on its way.
type WaitError struct {
	Reason, Message string
	// After is when to look again; zero means that a watch will tell.
	After time.Duration
	// failed says that it went wrong and must be begun anew, rest that it is as it should be and nothing goes on.
	failed, rest bool
}

// Error is the message.
func (e *WaitError) Error() string { return e.Message }

// Wait says that something is on its way and a watch will tell when it comes.
func Wait(reason, message string) error { return &WaitError{Reason: reason, Message: message} }

// WaitFor says that something is on its way and must be looked at again after a while.
func WaitFor(after time.Duration, reason, message string) error {
	return &WaitError{Reason: reason, Message: message, After: after}
}

// Failure says that something that was on its way went wrong, and does not go on before it is begun anew.
func Failure(reason, message string) error {
	return &WaitError{Reason: reason, Message: message, failed: true}
}

// Rest says that a step is not proven because that was asked for: nothing goes on, and no deadline runs.
func Rest(reason, message string) error {
	return &WaitError{Reason: reason, Message: message, rest: true}
}

// AtRest tells whether an error says that nothing goes on, as it was asked for.
func AtRest(err error) bool {
	wait := asWait(err)
	return wait != nil && wait.rest
}

// Failed tells whether an error says that something went wrong on its way.
func Failed(err error) bool {
	wait := asWait(err)
	return wait != nil && wait.failed
}

// TerminalError says that a step cannot succeed until something outside of it changes.
type TerminalError struct{ Reason, Message string }

// Error is the message.
func (e *TerminalError) Error() string { return e.Message }

// Terminal says that a step cannot succeed until something outside of it changes.
func Terminal(reason, message string) error { return &TerminalError{Reason: reason, Message: message} }

// advisoryError says that a step is not proven and that Ready does not wait for it this time.
type advisoryError struct{ error }

// Unwrap gives the error with its meaning.
func (e advisoryError) Unwrap() error { return e.error }

// Advisory makes the step that returns the error optional in this pass: nobody asked for what it proves.
func Advisory(err error) error { return advisoryError{err} }

func advisory(err error) bool {
	_, ok := errors.AsType[advisoryError](err)
	return ok
}

// Class names the meaning of an error: Wait, Terminal, Stale or Transient; empty for nil.
func Class(err error) string {
	switch {
	case err == nil:
		return ""
	case asWait(err) != nil:
		return "Wait"
	case asTerminal(err) != nil:
		return "Terminal"
	case errors.Is(err, ErrStale), errors.Is(err, ErrUnseen), apierrors.IsConflict(err):
		return "Stale"
	default:
		return "Transient"
	}
}

// Explain gives the reason and message that a condition shows for an error. The reason is fallback for an error that has
// none of its own.
func Explain(err error, fallback string) (reason, message string) {
	if wait := asWait(err); wait != nil {
		return wait.Reason, wait.Message
	}
	if terminal := asTerminal(err); terminal != nil {
		return terminal.Reason, terminal.Message
	}
	return fallback, err.Error()
}

// Result tells controller-runtime what to do after an error that could not be written down in a status: a stale view is soon
// looked at again, what is not seen yet when it is, any other error is tried again with controller-runtime's own backoff.
func Result(err error) (reconcile.Result, error) {
	switch Class(err) {
	case "Wait":
		return reconcile.Result{RequeueAfter: asWait(err).After}, nil
	case "Stale":
		if errors.Is(err, ErrUnseen) {
			return reconcile.Result{}, nil
		}
		if errors.Is(err, ErrPast) {
			return reconcile.Result{RequeueAfter: PastRetry}, nil
		}
		return reconcile.Result{RequeueAfter: StaleRetry}, nil
	default:
		return reconcile.Result{}, err
	}
}

// AfterFinalizer tells controller-runtime when to go on after a finalizer was put on: when a deletion that did not see it would be
// over.
func AfterFinalizer(err error) (reconcile.Result, error) {
	if err != nil {
		return Result(err)
	}
	return reconcile.Result{RequeueAfter: StaleRetry}, nil
}

// Later tells controller-runtime when a wait is over, after a pass whose outcome was written down. What went wrong is tried again
// when the status says; a transient error is logged here, since nobody else will.
func Later(ctx context.Context, outcomes []Outcome) reconcile.Result {
	result := reconcile.Result{}
	for _, o := range outcomes {
		if Class(o.Err) == "Transient" {
			logf.FromContext(ctx).Error(o.Err, "A step failed, it will be tried again", "step", o.Proves)
		}
		if wait := asWait(o.Err); wait != nil && wait.After > 0 && (result.RequeueAfter == 0 || wait.After < result.RequeueAfter) {
			result.RequeueAfter = wait.After
		}
	}
	return result
}

func asWait(err error) *WaitError {
	wait, _ := errors.AsType[*WaitError](err)
	return wait
}

func asTerminal(err error) *TerminalError {
	terminal, _ := errors.AsType[*TerminalError](err)
	return terminal
}
