// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/internal/step"
)

var (
	noon    = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	earlier = noon.Add(-time.Hour)
)

// c is a condition of generation 2 that came at noon.
func c(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(noon),
	}
}

// before is a condition of generation 1 that came an hour ago.
func before(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	condition := c(kind, status, reason, message)
	condition.ObservedGeneration, condition.LastTransitionTime = 1, metav1.NewTime(earlier)
	return condition
}

// since makes a condition keep the time of an earlier one.
func since(condition metav1.Condition, at time.Time) metav1.Condition {
	condition.LastTransitionTime = metav1.NewTime(at)
	return condition
}

func proven(kind string) step.Outcome { return step.Outcome{Proves: kind, Attempted: true} }

func stopped(kind string, err error) step.Outcome {
	return step.Outcome{Proves: kind, Attempted: true, Err: err}
}

// timed gives a step a deadline of a minute.
func timed(o step.Outcome) step.Outcome {
	o.Deadline = time.Minute
	return o
}

func optional(o step.Outcome) step.Outcome {
	o.Optional = true
	return o
}

func TestNext(t *testing.T) {
	wait := step.Wait("Installing", "installing it")
	terminal := step.Terminal("NotOurs", "it is not ours")
	boom := errors.New("boom")
	tests := map[string]struct {
		reason string
		pass   Pass
		want   []metav1.Condition
	}{
		"everything proven is ready": {
			reason: "neither Reconciling nor Stalled stands beside Ready True",
			pass:   Pass{Outcomes: []step.Outcome{proven("First"), proven("Second")}},
			want: []metav1.Condition{
				c("Ready", "True", "Provisioned", ""),
				c("First", "True", "Succeeded", ""),
				c("Second", "True", "Succeeded", ""),
			},
		},
		"the first visit that waits": {
			reason: "a step that was not reached is Unknown, and Ready has the reason of the step that waits",
			pass:   Pass{Outcomes: []step.Outcome{proven("First"), stopped("Second", wait), {Proves: "Third"}}},
			want: []metav1.Condition{
				c("Ready", "False", "Installing", "installing it"),
				c("Reconciling", "True", "Progressing", "installing it"),
				c("First", "True", "Succeeded", ""),
				c("Second", "False", "Installing", "installing it"),
				c("Third", "Unknown", "NotAttempted", ""),
			},
		},
		"an error of a call is on its way": {
			reason: "it is tried again by itself",
			pass:   Pass{Outcomes: []step.Outcome{stopped("First", boom)}},
			want: []metav1.Condition{
				c("Ready", "False", "ReconcileError", "boom"),
				c("Reconciling", "True", "Progressing", "boom"),
				c("First", "False", "ReconcileError", "boom"),
			},
		},
		"a terminal error stalls": {
			reason: "Stalled has the root reason",
			pass:   Pass{Outcomes: []step.Outcome{stopped("First", terminal), {Proves: "Second"}}},
			want: []metav1.Condition{
				c("Ready", "False", "NotOurs", "it is not ours"),
				c("Stalled", "True", "NotOurs", "it is not ours"),
				c("First", "False", "NotOurs", "it is not ours"),
				c("Second", "Unknown", "NotAttempted", ""),
			},
		},
		"an outage after the first Ready is degraded": {
			reason: "the root reason stays on the step, Ready tells that it was there once",
			pass:   Pass{WasReady: true, Outcomes: []step.Outcome{stopped("First", wait)}},
			want: []metav1.Condition{
				c("Ready", "False", "Degraded", "installing it"),
				c("Reconciling", "True", "Progressing", "installing it"),
				c("First", "False", "Installing", "installing it"),
			},
		},
		"a terminal error after the first Ready is degraded and stalled": {
			pass: Pass{WasReady: true, Outcomes: []step.Outcome{stopped("First", terminal)}},
			want: []metav1.Condition{
				c("Ready", "False", "Degraded", "it is not ours"),
				c("Stalled", "True", "NotOurs", "it is not ours"),
				c("First", "False", "NotOurs", "it is not ours"),
			},
		},
		"an optional step does not hold up Ready": {
			reason: "its own condition tells of it",
			pass:   Pass{Outcomes: []step.Outcome{proven("First"), optional(stopped("Advisor", terminal))}},
			want: []metav1.Condition{
				c("Ready", "True", "Provisioned", ""),
				c("First", "True", "Succeeded", ""),
				c("Advisor", "False", "NotOurs", "it is not ours"),
			},
		},
		"a status that did not change keeps its time": {
			reason: "reason, message and generation may change under it",
			pass: Pass{
				Previous: []metav1.Condition{before("Ready", "False", "Old", "old"), before("Reconciling", "True", "Progressing", "old"), before("First", "False", "Old", "old")},
				Outcomes: []step.Outcome{stopped("First", wait)},
			},
			want: []metav1.Condition{
				since(c("Ready", "False", "Installing", "installing it"), earlier),
				since(c("Reconciling", "True", "Progressing", "installing it"), earlier),
				since(c("First", "False", "Installing", "installing it"), earlier),
			},
		},
		"a status that changed has a new time": {
			pass: Pass{
				Previous: []metav1.Condition{before("Ready", "False", "Installing", "x"), before("First", "False", "Installing", "x")},
				Outcomes: []step.Outcome{proven("First")},
			},
			want: []metav1.Condition{c("Ready", "True", "Provisioned", ""), c("First", "True", "Succeeded", "")},
		},
		"a step that was not reached keeps what was last known of it": {
			reason: "with the generation it spoke of",
			pass: Pass{
				Previous: []metav1.Condition{before("Second", "True", "Succeeded", "")},
				Outcomes: []step.Outcome{stopped("First", wait), {Proves: "Second"}},
			},
			want: []metav1.Condition{
				c("Ready", "False", "Installing", "installing it"),
				c("Reconciling", "True", "Progressing", "installing it"),
				c("First", "False", "Installing", "installing it"),
				before("Second", "True", "Succeeded", ""),
			},
		},
		"a condition of a step that is no more goes": {
			pass: Pass{
				Previous: []metav1.Condition{before("Stalled", "True", "NotOurs", "x"), before("Gone", "True", "Succeeded", "")},
				Outcomes: []step.Outcome{proven("First")},
			},
			want: []metav1.Condition{c("Ready", "True", "Provisioned", ""), c("First", "True", "Succeeded", "")},
		},
		"a step within its deadline reconciles": {
			reason: "the last moment still counts as within",
			pass: Pass{
				Previous: []metav1.Condition{since(before("First", "False", "Installing", "x"), noon.Add(-time.Minute+time.Nanosecond))},
				Outcomes: []step.Outcome{timed(stopped("First", wait))},
			},
			want: []metav1.Condition{
				c("Ready", "False", "Installing", "installing it"),
				c("Reconciling", "True", "Progressing", "installing it"),
				since(c("First", "False", "Installing", "installing it"), noon.Add(-time.Minute+time.Nanosecond)),
			},
		},
		"a step past its deadline stalls": {
			pass: Pass{
				Previous: []metav1.Condition{since(before("First", "False", "Installing", "x"), noon.Add(-time.Minute))},
				Outcomes: []step.Outcome{timed(stopped("First", wait))},
			},
			want: []metav1.Condition{
				c("Ready", "False", "Installing", "installing it"),
				c("Stalled", "True", "Installing", "installing it"),
				since(c("First", "False", "Installing", "installing it"), noon.Add(-time.Minute)),
			},
		},
		"the deadline starts when the step is first tried": {
			reason: "being Unknown for long, while others were tried, does not count",
			pass: Pass{
				Previous: []metav1.Condition{before("First", "Unknown", "NotAttempted", "")},
				Outcomes: []step.Outcome{timed(stopped("First", wait))},
			},
			want: []metav1.Condition{
				c("Ready", "False", "Installing", "installing it"),
				c("Reconciling", "True", "Progressing", "installing it"),
				c("First", "False", "Installing", "installing it"),
			},
		},
		"a request gives a step that is late its whole deadline again": {
			reason: "it is being tried, not stalled",
			pass: Pass{
				Previous: []metav1.Condition{before("Ready", "False", "Installing", "x"), before("Stalled", "True", "Installing", "x"), before("First", "False", "Installing", "x")},
				Outcomes: []step.Outcome{timed(stopped("First", wait))},
				Restart:  true,
			},
			want: []metav1.Condition{
				since(c("Ready", "False", "Installing", "installing it"), earlier),
				c("Reconciling", "True", "Progressing", "installing it"),
				c("First", "False", "Installing", "installing it"),
			},
		},
		"what was suspended long ago is at rest": {
			reason: "nothing goes on, no deadline runs, and it is as it should be: not degraded",
			pass: Pass{
				Previous: []metav1.Condition{before("Ready", "False", "CloudSpaceSuspended", "x"), before("Reconciling", "True", "Progressing", "x"), before("First", "False", "CloudSpaceSuspended", "x")},
				Outcomes: []step.Outcome{timed(stopped("First", step.Rest("CloudSpaceSuspended", "suspended")))}, WasReady: true,
			},
			want: []metav1.Condition{
				since(c("Ready", "False", "CloudSpaceSuspended", "suspended"), earlier),
				since(c("First", "False", "CloudSpaceSuspended", "suspended"), earlier),
			},
		},
		"what failed before it is suspended has the whole deadline to end": {
			pass: Pass{
				Previous: []metav1.Condition{before("Ready", "False", "Degraded", "x"), before("Stalled", "True", "Starting", "x"), before("First", "False", "Starting", "x")},
				Outcomes: []step.Outcome{timed(stopped("First", step.Wait("CloudSpaceSuspended", "being suspended")))}, WasReady: true,
			},
			want: []metav1.Condition{
				since(c("Ready", "False", "CloudSpaceSuspended", "being suspended"), earlier),
				c("Reconciling", "True", "Progressing", "being suspended"),
				c("First", "False", "CloudSpaceSuspended", "being suspended"),
			},
		},
		"what is resumed has the whole deadline to come back": {
			pass: Pass{
				Previous: []metav1.Condition{before("Ready", "False", "CloudSpaceSuspended", "x"), before("First", "False", "CloudSpaceSuspended", "x")},
				Outcomes: []step.Outcome{timed(stopped("First", wait))}, WasReady: true,
			},
			want: []metav1.Condition{
				since(c("Ready", "False", "Degraded", "installing it"), earlier),
				c("Reconciling", "True", "Progressing", "installing it"),
				c("First", "False", "Installing", "installing it"),
			},
		},
		"a request does not help what cannot succeed": {
			pass: Pass{
				Previous: []metav1.Condition{before("Ready", "False", "NotOurs", "x"), before("Stalled", "True", "NotOurs", "x"), before("First", "False", "NotOurs", "x")},
				Outcomes: []step.Outcome{timed(stopped("First", terminal))},
				Restart:  true,
			},
			want: []metav1.Condition{
				since(c("Ready", "False", "NotOurs", "it is not ours"), earlier),
				since(c("Stalled", "True", "NotOurs", "it is not ours"), earlier),
				c("First", "False", "NotOurs", "it is not ours"),
			},
		},
		"a request alters nothing of what is proven, or was not reached": {
			pass: Pass{
				Previous: []metav1.Condition{
					before("Ready", "False", "Installing", "x"), before("First", "True", "Succeeded", ""),
					before("Second", "False", "Installing", "x"), before("Third", "False", "Installing", "y"),
				},
				Outcomes: []step.Outcome{proven("First"), timed(stopped("Second", wait)), timed(step.Outcome{Proves: "Third"})},
				Restart:  true,
			},
			want: []metav1.Condition{
				since(c("Ready", "False", "Installing", "installing it"), earlier),
				c("Reconciling", "True", "Progressing", "installing it"),
				since(c("First", "True", "Succeeded", ""), earlier),
				c("Second", "False", "Installing", "installing it"),
				before("Third", "False", "Installing", "y"),
			},
		},
		"what could not succeed is mended: the deadline begins": {
			reason: "how long somebody took to mend it does not count",
			pass: Pass{
				Previous: []metav1.Condition{before("Ready", "False", "UnsupportedVersion", "x"), before("Stalled", "True", "UnsupportedVersion", "x"), before("First", "False", "UnsupportedVersion", "x")},
				Outcomes: []step.Outcome{timed(stopped("First", wait))},
			},
			want: []metav1.Condition{
				since(c("Ready", "False", "Installing", "installing it"), earlier),
				c("Reconciling", "True", "Progressing", "installing it"),
				c("First", "False", "Installing", "installing it"),
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.pass.Generation, tt.pass.Now = 2, noon
			if diff := cmp.Diff(tt.want, Next(tt.pass)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

// A clock that was ahead when a step began must not put its deadline off: it is as far off as the deadline is long, and comes.
func TestAClockThatWasAheadDoesNotPutADeadlineOff(t *testing.T) {
	ahead := since(c("First", "False", "Installing", "x"), noon.Add(time.Hour))
	pass := Pass{Previous: []metav1.Condition{ahead}, Outcomes: []step.Outcome{timed(stopped("First", step.Wait("Installing", "x")))}, Generation: 2, Now: noon}
	next := Next(pass)
	if left := NextDeadline(next, pass.Outcomes, noon); left != time.Minute {
		t.Errorf("the deadline comes in %s, want in a minute", left)
	}
	pass.Previous, pass.Now = next, noon.Add(time.Minute)
	if last := Next(pass); !meta.IsStatusConditionTrue(last, "Stalled") {
		t.Errorf("a minute later: %v, want it to have passed", last)
	}
	proven := Pass{Previous: []metav1.Condition{since(c("First", "True", "Succeeded", ""), noon.Add(time.Hour))}, Outcomes: []step.Outcome{proven("First")}, Generation: 2, Now: noon}
	if got := meta.FindStatusCondition(Next(proven), "First").LastTransitionTime; !got.Time.Equal(noon.Add(time.Hour)) {
		t.Errorf("what is proven has the time %s now: every finished object would be written again", got)
	}
}

func TestDeleting(t *testing.T) {
	tests := map[string]struct {
		pass Pass
		want []metav1.Condition
	}{
		"says what is waited for": {
			pass: Pass{Outcomes: []step.Outcome{stopped("ReleaseInner", step.Wait("Remaining", "waiting for release a"))}},
			want: []metav1.Condition{
				c("Ready", "False", "Deleting", "waiting for release a"),
				c("Reconciling", "True", "Deleting", "waiting for release a"),
			},
		},
		"says what went wrong": {
			pass: Pass{Outcomes: []step.Outcome{proven("A"), stopped("B", errors.New("boom"))}},
			want: []metav1.Condition{c("Ready", "False", "Deleting", "boom"), c("Reconciling", "True", "Deleting", "boom")},
		},
		"has a message when nothing holds it up": {
			want: []metav1.Condition{c("Ready", "False", "Deleting", "deleting"), c("Reconciling", "True", "Deleting", "deleting")},
		},
		"keeps the steps of the way up as they were, and drops Stalled": {
			pass: Pass{Previous: []metav1.Condition{
				before("Ready", "False", "NotOurs", "x"), before("Stalled", "True", "NotOurs", "x"),
				before("First", "True", "Succeeded", ""), before("Second", "False", "NotOurs", "x"),
			}},
			want: []metav1.Condition{
				since(c("Ready", "False", "Deleting", "deleting"), earlier),
				c("Reconciling", "True", "Deleting", "deleting"),
				before("First", "True", "Succeeded", ""), before("Second", "False", "NotOurs", "x"),
			},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.pass.Generation, tt.pass.Now = 2, noon
			if diff := cmp.Diff(tt.want, Deleting(tt.pass)); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNextDeadline(t *testing.T) {
	wait := step.Wait("Installing", "x")
	tests := map[string]struct {
		conditions []metav1.Condition
		outcomes   []step.Outcome
		want       time.Duration
	}{
		"none when all is proven": {
			conditions: []metav1.Condition{c("First", "True", "Succeeded", "")},
			outcomes:   []step.Outcome{timed(proven("First"))},
		},
		"none for a step without a deadline": {
			conditions: []metav1.Condition{c("First", "False", "Installing", "x")},
			outcomes:   []step.Outcome{stopped("First", wait)},
		},
		"what is left of it for a step that waits": {
			conditions: []metav1.Condition{since(c("First", "False", "Installing", "x"), noon.Add(-20*time.Second))},
			outcomes:   []step.Outcome{timed(stopped("First", wait))},
			want:       40 * time.Second,
		},
		"none once it has passed": {
			conditions: []metav1.Condition{since(c("First", "False", "Installing", "x"), earlier)},
			outcomes:   []step.Outcome{timed(stopped("First", wait))},
		},
		"none for a step that was not reached": {
			conditions: []metav1.Condition{c("First", "False", "Installing", "x"), c("Second", "Unknown", "NotAttempted", "")},
			outcomes:   []step.Outcome{stopped("First", wait), timed(step.Outcome{Proves: "Second"})},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NextDeadline(tt.conditions, tt.outcomes, noon); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// What is stored must come back from the API server as it was written, or every pass finds a difference and writes again.
func TestLongMessagesAreCutAndStayText(t *testing.T) {
	tests := map[string]struct{ message, want string }{
		"at the limit nothing is cut":          {strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		"above it the end goes":                {strings.Repeat("a", 1025), strings.Repeat("a", 1021) + "..."},
		"a character of many bytes is not cut": {strings.Repeat("ü", 600), strings.Repeat("ü", 510) + "..."},
		"bytes that are no text are replaced":  {"a\xffb", "a\uFFFDb"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, got := range []string{
				Next(Pass{Generation: 2, Now: noon, Outcomes: []step.Outcome{stopped("First", errors.New(tt.message))}})[2].Message,
				Deleting(Pass{Generation: 2, Now: noon, Outcomes: []step.Outcome{stopped("First", errors.New(tt.message))}})[0].Message,
			} {
				if got != tt.want {
					t.Errorf("got %d bytes ending in %q, want %d ending in %q", len(got), tail(got), len(tt.want), tail(tt.want))
				}
				if !utf8.ValidString(got) {
					t.Errorf("%q is not text", tail(got))
				}
			}
		})
	}
}

func tail(s string) string { return s[max(0, len(s)-12):] }

func TestStatedKeepsTimesAndDropsWhatIsNotStated(t *testing.T) {
	first, later := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC), time.Date(2030, 1, 2, 13, 0, 0, 0, time.UTC)
	before := Stated(nil, 1, first, Statement{Type: "Ready", Reason: "Enforced"}, Statement{Type: "OverCommitted", Reason: "HardLowered", Message: "cpu 1"})
	after := Stated(before, 2, later, Statement{Type: "Ready", Reason: "Enforced", Message: "1 waits"}, Statement{Type: "New", Reason: "Enforced"})
	var told []string
	for _, c := range after {
		told = append(told, fmt.Sprintf("%s %s %s %q of %d since %s", c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration, c.LastTransitionTime.Format("15:04")))
	}
	want := []string{`Ready True Enforced "1 waits" of 2 since 12:00`, `New True Enforced "" of 2 since 13:00`}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
