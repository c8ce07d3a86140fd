// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// noon is when the passes of these tests are made.
var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// seed is one whose first wait is neither shortened nor lengthened, and whose second is 9.234 tenths of what it would be.
const seed = "uid-1712"

var (
	errBoom  = errors.New("boom")
	failing  = step.Failure("InstallFailed", "installing Flux failed: no")
	terminal = step.Terminal("NotOurs", "it is not ours")
	onItsWay = step.Wait("Installing", "installing Flux")
)

func at(after time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(after)} }

func asked(request string) map[string]string {
	return map[string]string{"tenancy.kubeopera.io/retry-requested": request}
}

// lastError is one of the step Flux, which came a while before noon.
func lastError(before time.Duration) *v1alpha1.RetryError {
	return &v1alpha1.RetryError{Step: "Flux", Reason: "InstallFailed", Message: "installing Flux failed: no", Class: "Transient", Time: *at(-before)}
}

// account has failed before, last some seconds ago.
func account(attempts int32, next *metav1.Time) v1alpha1.RetryStatus {
	return v1alpha1.RetryStatus{Attempts: attempts, LastError: lastError(4 * time.Second), NextRetryTime: next, LastHandledRequest: "monday"}
}

// stops is a pass that Flux stops, with what its condition then says.
func stops(err error) Pass {
	return Pass{
		Outcomes:   []step.Outcome{{Proves: "Namespace", Attempted: true}, {Proves: "Flux", Attempted: true, Err: err}, {Proves: "Last"}},
		Conditions: []metav1.Condition{{Type: "Namespace", Status: "True"}, {Type: "Flux", Status: "False"}, {Type: "Last", Status: "Unknown"}},
	}
}

// proves is a pass that proves everything, or Flux and what is before it, while the last step stops it.
func proves(last error) Pass {
	p := Pass{
		Outcomes:   []step.Outcome{{Proves: "Namespace", Attempted: true}, {Proves: "Flux", Attempted: true}, {Proves: "Last", Attempted: true, Err: last}},
		Conditions: []metav1.Condition{{Type: "Namespace", Status: "True"}, {Type: "Flux", Status: "True"}, {Type: "Last", Status: "True"}},
	}
	if last != nil {
		p.Conditions[2].Status = "False"
	}
	return p
}

func stalled(p Pass) Pass {
	p.Conditions = append(p.Conditions, metav1.Condition{Type: "Stalled", Status: "True"})
	return p
}

// optional makes the step that stops a pass one that does not count for Ready.
func optional(p Pass) Pass {
	for i := range p.Outcomes {
		p.Outcomes[i].Optional = p.Outcomes[i].Err != nil
	}
	return p
}

func TestARequestIsNewUntilItIsHandled(t *testing.T) {
	tests := map[string]struct {
		handled     string
		annotations map[string]string
		want        bool
	}{
		"nobody asks":                       {},
		"nobody asks any more":              {handled: "monday"},
		"an empty request is none":          {annotations: asked("")},
		"an empty one after another":        {handled: "monday", annotations: asked("")},
		"the first request":                 {annotations: asked("monday"), want: true},
		"the same request again":            {handled: "monday", annotations: asked("monday")},
		"another request":                   {handled: "monday", annotations: asked("tuesday"), want: true},
		"other annotations ask for nothing": {annotations: map[string]string{"reconcile.fluxcd.io/requestedAt": "now"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Requested(v1alpha1.RetryStatus{LastHandledRequest: tt.handled}, tt.annotations); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestATryIsDueWhenItsTimeComesOrSomebodyAsks(t *testing.T) {
	tests := map[string]struct {
		status      v1alpha1.RetryStatus
		annotations map[string]string
		want        bool
	}{
		"nothing failed":                           {},
		"it is being tried":                        {status: account(3, nil)},
		"the last moment before the time":          {status: account(3, at(time.Nanosecond))},
		"the time itself":                          {status: account(3, at(0)), want: true},
		"the time has passed":                      {status: account(3, at(-time.Hour)), want: true},
		"the longest wait":                         {status: account(3, at(66*time.Minute))},
		"more than the longest wait":               {status: account(3, at(66*time.Minute+time.Nanosecond)), want: true},
		"somebody asks before the time":            {status: account(3, at(time.Hour)), annotations: asked("tuesday"), want: true},
		"somebody asks while it is being tried":    {status: account(3, nil), annotations: asked("tuesday"), want: true},
		"somebody asks, though nothing failed":     {annotations: asked("monday"), want: true},
		"what was asked for was tried already":     {status: account(3, at(time.Hour)), annotations: asked("monday")},
		"a handled request does not hold the time": {status: account(3, at(0)), annotations: asked("monday"), want: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Due(tt.status, tt.annotations, Backoff{Base: 10 * time.Second, Max: time.Hour}, noon); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestWait(t *testing.T) {
	tests := map[string]struct {
		next *metav1.Time
		want time.Duration
	}{
		"no try is to come":                       {},
		"until the time":                          {next: at(90 * time.Second), want: 90 * time.Second},
		"less than a millisecond is one":          {next: at(time.Microsecond), want: time.Millisecond},
		"a time that came is made use of at once": {next: at(0), want: time.Millisecond},
		"and so is one that passed":               {next: at(-time.Hour), want: time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Wait(v1alpha1.RetryStatus{NextRetryTime: tt.next}, noon); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	none := v1alpha1.RetryStatus{}
	// counted is an account whose last error came in this pass.
	counted := func(attempts int32, wait time.Duration, e v1alpha1.RetryError) v1alpha1.RetryStatus {
		e.Time = *at(0)
		return v1alpha1.RetryStatus{Attempts: attempts, LastError: &e, NextRetryTime: at(wait), LastHandledRequest: "monday"}
	}
	refused := v1alpha1.RetryError{Step: "Flux", Reason: "NotOurs", Message: "it is not ours", Class: "Terminal"}
	call := v1alpha1.RetryError{Step: "Flux", Reason: "ReconcileError", Message: "boom", Class: "Transient"}
	late := v1alpha1.RetryError{Step: "Flux", Reason: "Installing", Message: "installing Flux", Class: "Transient"}
	handled := v1alpha1.RetryStatus{LastHandledRequest: "monday"}
	tests := map[string]struct {
		reason   string
		previous v1alpha1.RetryStatus
		asked    string
		pass     Pass
		want     v1alpha1.RetryStatus
	}{
		"nothing fails":              {previous: none, pass: proves(nil), want: none},
		"waiting is no failure":      {previous: none, pass: stops(onItsWay), want: none},
		"a stale view is no failure": {previous: none, pass: stops(step.ErrStale), want: none},

		"a failure is counted, with a time for the next try": {
			previous: handled, pass: stops(failing), want: counted(1, 10*time.Second, *lastError(0)),
		},
		"a wrapped failure is one": {
			previous: handled, pass: stops(fmt.Errorf("looking: %w", failing)), want: counted(1, 10*time.Second, *lastError(0)),
		},
		"a call that failed is transient": {previous: handled, pass: stops(errBoom), want: counted(1, 10*time.Second, call)},
		"what cannot succeed is terminal, and tried again all the same": {
			previous: handled, pass: stops(terminal), want: counted(1, 10*time.Second, refused),
		},
		"a deadline that passed is a failure of what was waited for": {
			previous: handled, pass: stalled(stops(onItsWay)), want: counted(1, 10*time.Second, late),
		},
		"a failure past its deadline is counted once": {
			previous: handled, pass: stalled(stops(failing)), want: counted(1, 10*time.Second, *lastError(0)),
		},

		"an event before the next time changes nothing": {
			reason:   "neither the count nor any time: nothing is written",
			previous: account(2, at(time.Nanosecond)), pass: stops(failing), want: account(2, at(time.Nanosecond)),
		},
		"it fails with something else before the next time": {
			reason:   "the message is news; the try is the same",
			previous: account(2, at(time.Minute)), pass: stops(errBoom),
			want: v1alpha1.RetryStatus{
				Attempts: 2, NextRetryTime: at(time.Minute), LastHandledRequest: "monday",
				LastError: &v1alpha1.RetryError{Step: "Flux", Reason: "ReconcileError", Message: "boom", Class: "Transient", Time: *at(0)},
			},
		},
		"progress before the next time keeps it": {
			previous: account(2, at(time.Minute)), pass: stops(onItsWay), want: account(2, at(time.Minute)),
		},

		"the time comes: it is being tried": {
			reason:   "it has no next time, and the account stays",
			previous: account(2, at(0)), pass: stops(onItsWay), want: account(2, nil),
		},
		"it is still being tried": {previous: account(2, nil), pass: stops(onItsWay), want: account(2, nil)},
		"a stale view while it is being tried": {
			previous: account(2, nil), pass: stops(step.ErrStale), want: account(2, nil),
		},
		"the try fails": {
			previous: account(1, nil), pass: stops(failing), want: counted(2, 18468*time.Millisecond, *lastError(0)),
		},
		"the try fails at once": {
			previous: account(1, at(0)), pass: stops(failing), want: counted(2, 18468*time.Millisecond, *lastError(0)),
		},
		"a step before it waits while it is being tried": {
			reason:   "the step that failed was not reached, so it is not proven",
			previous: account(2, nil),
			pass: Pass{
				Outcomes:   []step.Outcome{{Proves: "Namespace", Attempted: true, Err: onItsWay}, {Proves: "Flux"}},
				Conditions: []metav1.Condition{{Type: "Namespace", Status: "False"}, {Type: "Flux", Status: "False"}},
			},
			want: account(2, nil),
		},

		"the step that failed is proven, everything is": {
			reason:   "only what was asked for is remembered",
			previous: account(7, nil), pass: proves(nil), want: handled,
		},
		"the step that failed is proven before its time": {
			reason:   "it mended itself",
			previous: account(7, at(time.Hour)), pass: proves(nil), want: handled,
		},
		"the step that failed is proven, the next one waits": {previous: account(7, nil), pass: proves(onItsWay), want: handled},
		"the step that failed is proven, an optional one fails": {
			reason:   "it has no account but this",
			previous: account(7, nil), pass: optional(proves(errBoom)),
			want: counted(1, 10*time.Second, v1alpha1.RetryError{Step: "Last", Reason: "ReconcileError", Message: "boom", Class: "Transient"}),
		},
		"the step that failed is no more": {
			reason:   "nothing could prove it any more",
			previous: account(7, nil),
			pass:     Pass{Outcomes: []step.Outcome{{Proves: "Namespace", Attempted: true}}, Conditions: []metav1.Condition{{Type: "Namespace", Status: "True"}}},
			want:     handled,
		},
		"the step that failed is proven, the next one fails before its time": {
			reason:   "a step that fails for the first time does not wait for what another has failed before",
			previous: account(7, at(time.Hour)), pass: proves(errBoom),
			want: counted(1, 10*time.Second, v1alpha1.RetryError{Step: "Last", Reason: "ReconcileError", Message: "boom", Class: "Transient"}),
		},
		"an earlier step fails while the one that failed is not proven": {
			reason:   "the try failed, if not where it did last",
			previous: account(1, nil),
			pass: Pass{
				Outcomes:   []step.Outcome{{Proves: "Namespace", Attempted: true, Err: errBoom}, {Proves: "Flux"}},
				Conditions: []metav1.Condition{{Type: "Namespace", Status: "False"}, {Type: "Flux", Status: "False"}},
			},
			want: counted(2, 18468*time.Millisecond, v1alpha1.RetryError{Step: "Namespace", Reason: "ReconcileError", Message: "boom", Class: "Transient"}),
		},

		"a call of an optional step fails": {
			previous: handled, pass: optional(proves(errBoom)),
			want: counted(1, 10*time.Second, v1alpha1.RetryError{Step: "Last", Reason: "ReconcileError", Message: "boom", Class: "Transient"}),
		},
		"an optional step cannot succeed": {previous: none, pass: optional(proves(terminal)), want: none},
		"an optional step is on its way":  {previous: none, pass: optional(proves(onItsWay)), want: none},
		"an optional step went wrong": {
			previous: handled, pass: optional(proves(failing)),
			want: counted(1, 10*time.Second, func() v1alpha1.RetryError {
				failed := *lastError(0)
				failed.Step = "Last"
				return failed
			}()),
		},
		"an optional step failed, now one fails that counts": {
			reason:   "it does not wait for the other's next try",
			previous: account(7, at(time.Hour)),
			pass: Pass{
				Outcomes:   []step.Outcome{{Proves: "Namespace", Attempted: true, Err: errBoom}, {Proves: "Flux", Optional: true}},
				Conditions: []metav1.Condition{{Type: "Namespace", Status: "False"}, {Type: "Flux", Status: "False"}},
			},
			want: counted(1, 10*time.Second, v1alpha1.RetryError{Step: "Namespace", Reason: "ReconcileError", Message: "boom", Class: "Transient"}),
		},
		"an optional step fails before one that counts": {
			previous: handled,
			pass: Pass{Outcomes: []step.Outcome{
				{Proves: "Advisor", Attempted: true, Err: terminal, Optional: true}, {Proves: "Flux", Attempted: true, Err: failing},
			}},
			want: counted(1, 10*time.Second, *lastError(0)),
		},

		"a request where nothing failed is handled": {previous: none, asked: "monday", pass: proves(nil), want: handled},
		"a request resets the account": {
			previous: account(7, at(time.Hour)), asked: "tuesday", pass: stops(onItsWay),
			want: v1alpha1.RetryStatus{LastHandledRequest: "tuesday"},
		},
		"a request that fails at once is the first try": {
			previous: account(7, at(time.Hour)), asked: "tuesday", pass: stops(failing),
			want: func() v1alpha1.RetryStatus {
				s := counted(1, 10*time.Second, *lastError(0))
				s.LastHandledRequest = "tuesday"
				return s
			}(),
		},
		"a request is handled once": {
			reason:   "it stands there still",
			previous: account(2, at(time.Minute)), asked: "monday", pass: stops(failing), want: account(2, at(time.Minute)),
		},
		"a request that was taken away is remembered": {
			reason:   "put there again it is the same",
			previous: account(2, nil), pass: stops(onItsWay), want: account(2, nil),
		},

		"a clock that jumped back by less than a wait": {
			reason:   "what failed in what is now the future is not counted again",
			previous: v1alpha1.RetryStatus{Attempts: 2, LastError: lastError(-time.Minute), NextRetryTime: at(time.Hour + time.Minute)},
			pass:     stops(failing),
			want:     v1alpha1.RetryStatus{Attempts: 2, LastError: lastError(-time.Minute), NextRetryTime: at(time.Hour + time.Minute)},
		},
		"a clock that jumped back by more than any wait": {
			reason:   "the try is made at once, and the next waits as long as it should",
			previous: account(1, at(3*time.Hour)), pass: stops(failing), want: counted(2, 18468*time.Millisecond, *lastError(0)),
		},
		"a clock that jumped back while something is on its way": {
			previous: account(2, at(3*time.Hour)), pass: stops(onItsWay), want: account(2, nil),
		},
		"a request ends a wait that a clock made long": {
			previous: v1alpha1.RetryStatus{Attempts: 2, LastError: lastError(-time.Hour), NextRetryTime: at(time.Hour + time.Minute)},
			asked:    "monday", pass: stops(onItsWay), want: handled,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, before := tt.pass, tt.previous.DeepCopy()
			p.Previous, p.Seed, p.Now, p.Backoff = tt.previous, seed, noon, Backoff{Base: 10 * time.Second, Max: time.Hour}
			if tt.asked != "" {
				p.Annotations = asked(tt.asked)
			}
			got := Next(p)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(*before, tt.previous); diff != "" {
				t.Errorf("Next altered what it was given:\n%s", diff)
			}
			p.Previous = got
			if diff := cmp.Diff(got, Next(p)); diff != "" {
				t.Errorf("a second pass at the same moment would write again:\n%s", diff)
			}
		})
	}
}

// A clock that is wrong by an hour, either way and for any time, costs no more than one try and the longest wait each time it jumps.
func TestAJumpingClockNeitherHoldsTriesOffNorHastensThem(t *testing.T) {
	backoff := Backoff{Base: 10 * time.Second, Max: 5 * time.Minute}
	status, jumps := v1alpha1.RetryStatus{}, []time.Duration{0, time.Hour, 0, -time.Hour, 0, time.Hour, -time.Hour}
	tries, lastTry := 0, time.Duration(0)
	for second := range 7 * 600 {
		// True time passes evenly; the clock of the operator jumps every ten minutes.
		passed := time.Duration(second) * time.Second
		pass := stops(failing)
		pass.Previous, pass.Seed, pass.Backoff, pass.Now = status, seed, backoff, noon.Add(passed+jumps[second/600])
		next := Next(pass)
		if next.Attempts != status.Attempts {
			tries, lastTry = tries+1, passed
		}
		if waited := passed - lastTry; waited > backoff.longest() {
			t.Fatalf("after %s the last try is %s ago, want at most %s", passed, waited, backoff.longest())
		}
		status = next
	}
	// Five doublings from ten seconds, then one every five minutes or so, and one for each jump.
	if most := 5 + 7*600/270 + len(jumps); tries > most {
		t.Errorf("%d tries in %d seconds, want at most %d", tries, 7*600, most)
	}
}

// The account of one failure, over all the passes that see it.
func TestATryIsCountedOnceHoweverManyPassesSeeIt(t *testing.T) {
	status, p := v1alpha1.RetryStatus{}, stops(failing)
	p.Seed, p.Backoff = seed, Backoff{Base: 10 * time.Second, Max: time.Hour}
	for after := range 10 {
		p.Previous, p.Now = status, noon.Add(time.Duration(after)*time.Second)
		status = Next(p)
	}
	if status.Attempts != 1 || !status.NextRetryTime.Time.Equal(noon.Add(10*time.Second)) {
		t.Errorf("%d attempts, next %v, want 1 and 10 s after the first", status.Attempts, status.NextRetryTime)
	}
	p.Previous, p.Now = status, noon.Add(10*time.Second)
	if status = Next(p); status.Attempts != 2 {
		t.Errorf("%d attempts when the time has come, want 2", status.Attempts)
	}
}

// A message is kept as it can be stored: otherwise each pass would find a difference and write again.
func TestALongMessageIsKeptAsItCanBeStored(t *testing.T) {
	p := stops(errors.New(strings.Repeat("ü", 600)))
	p.Now, p.Seed, p.Backoff = noon, seed, Backoff{Base: time.Second, Max: time.Minute}
	got := Next(p)
	if want := strings.Repeat("ü", 510) + "..."; got.LastError.Message != want {
		t.Errorf("the message has %d bytes, want %d", len(got.LastError.Message), len(want))
	}
	p.Previous = got
	if diff := cmp.Diff(got, Next(p)); diff != "" {
		t.Errorf("a second pass would write again:\n%s", diff)
	}
}

// nextWait is how long the wait is after a failure that follows so many others.
func nextWait(before int32, seed string, backoff Backoff) time.Duration {
	p := stops(failing)
	p.Previous, p.Seed, p.Backoff, p.Now = account(before, nil), seed, backoff, noon
	return Next(p).NextRetryTime.Sub(noon)
}

func TestWaitsDoubleUpToTheMaximum(t *testing.T) {
	backoff := Backoff{Base: 5 * time.Second, Max: 5 * time.Minute}
	tests := map[string]struct {
		before  int32
		backoff Backoff
		want    time.Duration
	}{
		"the first":                     {before: 0, backoff: backoff, want: 5 * time.Second},
		"the second":                    {before: 1, backoff: backoff, want: 10 * time.Second},
		"the third":                     {before: 2, backoff: backoff, want: 20 * time.Second},
		"the last below the maximum":    {before: 5, backoff: backoff, want: 160 * time.Second},
		"the first at the maximum":      {before: 6, backoff: backoff, want: 5 * time.Minute},
		"a hundred":                     {before: 99, backoff: backoff, want: 5 * time.Minute},
		"as many as can be counted":     {before: math.MaxInt32 - 1, backoff: backoff, want: 5 * time.Minute},
		"of a base that is the maximum": {before: 7, backoff: Backoff{Base: time.Minute, Max: time.Minute}, want: time.Minute},
		"of the longest that can be configured": {
			before: math.MaxInt32 - 1, backoff: Backoff{Base: 24 * time.Hour, Max: 24 * time.Hour}, want: 24 * time.Hour,
		},
		"of the widest that can be configured": {
			before: math.MaxInt32 - 1, backoff: Backoff{Base: 100 * time.Millisecond, Max: 24 * time.Hour}, want: 24 * time.Hour,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for i := range 200 {
				got := nextWait(tt.before, fmt.Sprintf("uid-%d", i), tt.backoff)
				if off := (got - tt.want).Abs(); off > tt.want/10 {
					t.Fatalf("uid-%d waits %v, want %v and at most a tenth more or less", i, got, tt.want)
				}
			}
		})
	}
}

func TestWaitsOfObjectsDiffer(t *testing.T) {
	backoff := Backoff{Base: 100 * time.Second, Max: time.Hour}
	tests := map[string]struct {
		seed string
		want time.Duration
	}{
		"a tenth shorter, at most": {"uid-33", 90 * time.Second},
		"as long as it would be":   {seed, 100 * time.Second},
		"a tenth longer, at most":  {"uid-2704", 110 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := nextWait(0, tt.seed, backoff).Round(time.Microsecond); got != tt.want {
				t.Errorf("%s waits %v, want %v", tt.seed, got, tt.want)
			}
			if again := nextWait(0, tt.seed, backoff).Round(time.Microsecond); again != tt.want {
				t.Errorf("%s waits %v in another pass, want %v again", tt.seed, again, tt.want)
			}
		})
	}
}

// What failed together must not be tried together: not for one object more than for others, and not in one half of the range.
func TestWaitsOfManyObjectsAreSpread(t *testing.T) {
	const objects = 1000
	backoff := Backoff{Base: 100 * time.Second, Max: time.Hour}
	distinct, shorter := map[time.Duration]bool{}, 0
	for i := range objects {
		wait := nextWait(0, fmt.Sprintf("6f2d1c0e-8a55-4b1c-9e2a-%012d", i), backoff)
		distinct[wait] = true
		if wait < 100*time.Second {
			shorter++
		}
	}
	if len(distinct) < objects/2 || shorter < objects/3 || shorter > 2*objects/3 {
		t.Errorf("%d objects have %d different waits, %d of them shortened", objects, len(distinct), shorter)
	}
}

// Whoever may annotate an object must not be able to keep its status from being written.
func TestARequestAlwaysFitsIntoAStatus(t *testing.T) {
	for _, asked := range []string{strings.Repeat("x", 257), strings.Repeat("x", 256<<10), strings.Repeat("\U0001F600", 300), "not\xffUTF-8"} {
		annotations := map[string]string{"tenancy.kubeopera.io/retry-requested": asked}
		status := Next(Pass{Annotations: annotations})
		if handled := status.LastHandledRequest; handled == "" || len(handled) > 256 || !utf8.ValidString(handled) {
			t.Errorf("a request of %d bytes is kept as %d", len(asked), len(handled))
		}
		if Requested(status, annotations) {
			t.Errorf("a request of %d bytes is not handled once", len(asked))
		}
	}
}
