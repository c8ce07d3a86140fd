// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var errBoom = errors.New("boom")

func conflict() error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "things"}, "a", errBoom)
}

func TestRunStopsAtTheFirstStepThatIsNotProven(t *testing.T) {
	tests := map[string]struct {
		reason string
		fails  map[string]error
		want   []Outcome
		ran    []string
	}{
		"all steps are proven": {
			reason: "each step runs once, in the order of the list",
			want: []Outcome{
				{Proves: "First", Attempted: true},
				{Proves: "Second", Attempted: true, Deadline: time.Minute},
				{Proves: "Third", Attempted: true, Optional: true},
			},
			ran: []string{"First", "Second", "Third"},
		},
		"the first step fails": {
			reason: "what comes after builds on it, so nothing else runs, and there is still an outcome for every step",
			fails:  map[string]error{"First": errBoom},
			want: []Outcome{
				{Proves: "First", Attempted: true, Err: errBoom},
				{Proves: "Second", Deadline: time.Minute},
				{Proves: "Third", Optional: true},
			},
			ran: []string{"First"},
		},
		"a step in the middle fails": {
			reason: "the steps before it are proven, those after it are not attempted",
			fails:  map[string]error{"Second": errBoom, "Third": errBoom},
			want: []Outcome{
				{Proves: "First", Attempted: true},
				{Proves: "Second", Attempted: true, Err: errBoom, Deadline: time.Minute},
				{Proves: "Third", Optional: true},
			},
			ran: []string{"First", "Second"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var ran []string
			do := func(name string) func(context.Context, *[]string) error {
				return func(_ context.Context, ran *[]string) error {
					*ran = append(*ran, name)
					return tt.fails[name]
				}
			}
			outcomes := Run(t.Context(), &ran, []Step[*[]string]{
				{Proves: "First", Do: do("First")},
				{Proves: "Second", Do: do("Second"), Deadline: time.Minute},
				{Proves: "Third", Do: do("Third"), Optional: true},
			})
			if diff := cmp.Diff(tt.want, outcomes, cmp.Comparer(sameError)); diff != "" {
				t.Errorf("%s: outcomes (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.ran, ran); diff != "" {
				t.Errorf("%s: steps that ran (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// What nobody asked for, and what does not count for Ready, keeps no other step from its turn.
func TestStepsGoOnAfterOneThatDoesNotCount(t *testing.T) {
	tests := map[string]struct {
		first   Step[struct{}]
		wantRan bool
	}{
		"an optional step":              {Step[struct{}]{Optional: true, Do: fails(errBoom)}, true},
		"a step that is advisory today": {Step[struct{}]{Do: fails(Advisory(Wait("WaitingForTurn", "waiting")))}, true},
		"a step that counts":            {Step[struct{}]{Do: fails(Wait("WaitingForTurn", "waiting"))}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			outcomes := Run(t.Context(), struct{}{}, []Step[struct{}]{tt.first, {Do: fails(nil)}})
			if outcomes[0].Optional != tt.wantRan || outcomes[1].Attempted != tt.wantRan {
				t.Errorf("got %+v, want the next step to run: %v", outcomes, tt.wantRan)
			}
			if Class(outcomes[0].Err) == "" {
				t.Error("the error lost its meaning")
			}
		})
	}
}

func fails(err error) func(context.Context, struct{}) error {
	return func(context.Context, struct{}) error { return err }
}

func TestRunOfNoStepsHasNoOutcome(t *testing.T) {
	if outcomes := Run(t.Context(), struct{}{}, nil); len(outcomes) != 0 {
		t.Errorf("got %v, want none", outcomes)
	}
}

func TestFirstError(t *testing.T) {
	tests := map[string]struct {
		outcomes []Outcome
		want     error
	}{
		"none when there are no steps":   {},
		"none when every step is proven": {outcomes: []Outcome{{Attempted: true}, {Attempted: true}}},
		"the error of the step that stopped the pass": {
			outcomes: []Outcome{{Attempted: true}, {Attempted: true, Err: errBoom}, {}}, want: errBoom,
		},
		"an optional step's error too, since it must be tried again": {
			outcomes: []Outcome{{Attempted: true}, {Attempted: true, Err: errBoom, Optional: true}}, want: errBoom,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := FirstError(tt.outcomes); !sameError(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestFirstStale(t *testing.T) {
	tests := map[string]struct {
		outcomes []Outcome
		want     error
	}{
		"none when nothing is stale": {outcomes: []Outcome{{Err: errBoom, Optional: true}, {Err: Wait("Installing", "installing")}}},
		"behind a step that does not count": {
			outcomes: []Outcome{{Err: Wait("WaitingForTurn", "waiting"), Optional: true}, {Err: ErrStale, Optional: true}}, want: ErrStale,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := FirstStale(tt.outcomes); !sameError(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// One table for the meaning of an error: its class, what a condition shows of it, and when the next pass comes.
func TestMeaningOfAnError(t *testing.T) {
	tests := map[string]struct {
		err         error
		wantClass   string
		wantReason  string
		wantMessage string
		wantResult  reconcile.Result
		wantErr     bool
	}{
		"nil is proven": {},
		"waiting for a watch is no error and sets no timer": {
			err: Wait("Installing", "installing Flux"), wantClass: "Wait", wantReason: "Installing", wantMessage: "installing Flux",
		},
		"waiting with a timer comes back after it": {
			err: WaitFor(2*time.Second, "WaitingForFlux", "waiting for it"), wantClass: "Wait",
			wantReason: "WaitingForFlux", wantMessage: "waiting for it", wantResult: reconcile.Result{RequeueAfter: 2 * time.Second},
		},
		"a wrapped wait is a wait": {
			err: fmt.Errorf("looking: %w", Wait("Installing", "installing Flux")), wantClass: "Wait",
			wantReason: "Installing", wantMessage: "installing Flux",
		},
		"what went wrong on its way is a wait that a status brings to an end": {
			err: Failure("InstallFailed", "installing Flux failed: no"), wantClass: "Wait", wantReason: "InstallFailed",
			wantMessage: "installing Flux failed: no",
		},
		"what is at rest waits for nothing": {
			err: Rest("CloudSpaceSuspended", "suspended"), wantClass: "Wait", wantReason: "CloudSpaceSuspended", wantMessage: "suspended",
		},
		"a terminal error is looked at again slowly and is not logged as an error": {
			err: Terminal("NotOurs", "it is not ours"), wantClass: "Terminal",
			wantReason: "NotOurs", wantMessage: "it is not ours", wantErr: true,
		},
		"a wrapped terminal error is terminal": {
			err: fmt.Errorf("making it: %w", Terminal("NotOurs", "it is not ours")), wantClass: "Terminal",
			wantReason: "NotOurs", wantMessage: "it is not ours", wantErr: true,
		},
		"a stale cache is asked again soon": {
			err: ErrStale, wantClass: "Stale", wantReason: "Fallback", wantMessage: "the cache is behind the API server",
			wantResult: reconcile.Result{RequeueAfter: 100 * time.Millisecond},
		},
		"an owner of the past is a stale view for a while": {
			err: fmt.Errorf("creating: %w", ErrPast), wantClass: "Stale", wantReason: "Fallback",
			wantMessage: "creating: it is not there as it was read: the cache is behind the API server",
			wantResult:  reconcile.Result{RequeueAfter: 2 * time.Second},
		},
		"a wrapped conflict is a stale view": {
			err: fmt.Errorf("writing: %w", conflict()), wantClass: "Stale", wantReason: "Fallback",
			wantMessage: `writing: Operation cannot be fulfilled on things "a": boom`,
			wantResult:  reconcile.Result{RequeueAfter: 100 * time.Millisecond},
		},
		"any other error is transient and left to the rate limiter": {
			err: errBoom, wantClass: "Transient", wantReason: "Fallback", wantMessage: "boom", wantErr: true,
		},
		"a name that is taken is transient": {
			err:       apierrors.NewAlreadyExists(schema.GroupResource{Resource: "things"}, "a"),
			wantClass: "Transient", wantReason: "Fallback", wantMessage: `things "a" already exists`, wantErr: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Class(tt.err); got != tt.wantClass {
				t.Errorf("class %q, want %q", got, tt.wantClass)
			}
			if tt.err != nil {
				reason, message := Explain(tt.err, "Fallback")
				if reason != tt.wantReason || message != tt.wantMessage {
					t.Errorf("explained as %q: %q, want %q: %q", reason, message, tt.wantReason, tt.wantMessage)
				}
				if tt.wantClass == "Wait" && errors.Unwrap(tt.err) == nil && tt.err.Error() != tt.wantMessage {
					t.Errorf("reads %q, want %q", tt.err.Error(), tt.wantMessage)
				}
			}
			result, err := Result(tt.err)
			if diff := cmp.Diff(tt.wantResult, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if tt.wantErr != (err != nil) {
				t.Errorf("returned error %v, want one: %v", err, tt.wantErr)
			}
			if tt.wantErr && !errors.Is(err, tt.err) {
				t.Errorf("returned error %v, want %v itself", err, tt.err)
			}
		})
	}
}

func TestOnlyWhatWentWrongOnItsWayHasFailed(t *testing.T) {
	tests := map[string]struct {
		err  error
		want bool
	}{
		"nothing":             {},
		"what went wrong":     {err: Failure("InstallFailed", "no"), want: true},
		"the same, wrapped":   {err: fmt.Errorf("looking: %w", Failure("InstallFailed", "no")), want: true},
		"what is on its way":  {err: Wait("Installing", "installing it")},
		"what is looked for":  {err: WaitFor(time.Second, "Starting", "waiting for etcd")},
		"what cannot succeed": {err: Terminal("NotOurs", "it is not ours")},
		"a stale view":        {err: ErrStale},
		"a call that failed":  {err: errBoom},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Failed(tt.err); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// Once the outcome is in a status, only a wait with a timer brings a pass by itself, and only a transient error is logged.
func TestLater(t *testing.T) {
	tests := map[string]struct {
		err        error
		also       error
		want       time.Duration
		wantLogged bool
	}{
		"the shorter of two timers": {err: WaitFor(time.Minute, "WaitingForTurn", "waiting"), also: WaitFor(2*time.Second, "Starting", "waiting for etcd"), want: 2 * time.Second},
		"nothing to wait for":       {},
		"a watch will tell":         {err: Wait("Installing", "installing it")},
		"a timer will":              {err: WaitFor(2*time.Second, "Starting", "waiting for etcd"), want: 2 * time.Second},
		"a timer, wrapped":          {err: fmt.Errorf("looking: %w", WaitFor(2*time.Second, "Starting", "waiting for etcd")), want: 2 * time.Second},
		"the status says when":      {err: Failure("InstallFailed", "no")},
		"what cannot succeed":       {err: Terminal("NotOurs", "it is not ours")},
		"a call that failed":        {err: errBoom, wantLogged: true},
		"a call that failed inside": {err: fmt.Errorf("asking: %w", errBoom), wantLogged: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			logged := 0
			log := funcr.New(func(string, string) { logged++ }, funcr.Options{})
			got := Later(logr.NewContext(t.Context(), log), []Outcome{{Err: tt.err}, {Err: tt.also}})
			if diff := cmp.Diff(reconcile.Result{RequeueAfter: tt.want}, got); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if (logged == 1) != tt.wantLogged || logged > 1 {
				t.Errorf("logged %d times, want once: %v", logged, tt.wantLogged)
			}
		})
	}
}

func TestAPassGoesOnSoonAfterAFinalizer(t *testing.T) {
	tests := map[string]struct {
		err     error
		want    time.Duration
		wantErr error
	}{
		"it was put on":             {want: 100 * time.Millisecond},
		"the object had changed":    {err: conflict(), want: 100 * time.Millisecond},
		"it could not be put on":    {err: errBoom, wantErr: errBoom},
		"it has to wait for others": {err: WaitFor(time.Second, "Terminating", "x"), want: time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := AfterFinalizer(tt.err)
			if diff := cmp.Diff(reconcile.Result{RequeueAfter: tt.want}, got); diff != "" || !errors.Is(err, tt.wantErr) {
				t.Errorf("got error %v, want %v; result (-want +got):\n%s", err, tt.wantErr, diff)
			}
		})
	}
}

func sameError(a, b error) bool { return errors.Is(a, b) && errors.Is(b, a) }
