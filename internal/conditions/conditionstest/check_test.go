// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package conditionstest

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

var noon = metav1.NewTime(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC))

func condition(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 3, LastTransitionTime: noon,
	}
}

func active() *v1alpha1.CloudSpace {
	return &v1alpha1.CloudSpace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "tenancy.kubeopera.io/v1alpha1", Kind: "CloudSpace"},
		ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "tenant-alice", Generation: 3},
		Status: v1alpha1.CloudSpaceStatus{
			ObservedGeneration: 3,
			Phase:              "Active",
			Timeline:           []v1alpha1.PhaseTransition{{Phase: "Pending", Time: noon}, {Phase: "Active", Time: noon}},
			Conditions: []metav1.Condition{
				condition("Ready", "True", "Provisioned", ""),
				condition("QuotaReserved", "True", "Succeeded", ""),
			},
		},
	}
}

func failed() *v1alpha1.CloudSpace {
	object := active()
	object.Status.Phase = "Failed"
	object.Status.Timeline[1].Phase = "Failed"
	object.Status.Conditions = []metav1.Condition{
		condition("Ready", "False", "NotOurs", "it is not ours"),
		condition("Stalled", "True", "NotOurs", "it is not ours"),
		condition("NamespaceReady", "False", "NotOurs", "it is not ours"),
	}
	return object
}

func TestCheck(t *testing.T) {
	tests := map[string]struct {
		object func() *v1alpha1.CloudSpace
		breaks func(*v1alpha1.CloudSpace)
		want   string
	}{
		"a CloudSpace that is active passes": {object: active},
		"one that has failed passes":         {object: failed},
		"one that is being made passes": {object: active, breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Phase, c.Status.Timeline = "Pending", c.Status.Timeline[:1]
			c.Status.Conditions = []metav1.Condition{
				condition("Ready", "False", "Installing", "installing"),
				condition("Reconciling", "True", "Progressing", "installing"),
				condition("FluxReady", "Unknown", "NotAttempted", ""),
			}
		}},
		"one that is being deleted passes": {object: active, breaks: func(c *v1alpha1.CloudSpace) {
			c.DeletionTimestamp = &noon
			c.Status.Phase = "Deleting"
			c.Status.Timeline = append(c.Status.Timeline, v1alpha1.PhaseTransition{Phase: "Deleting", Time: noon})
			c.Status.Conditions[0] = condition("Ready", "False", "Deleting", "waiting")
			c.Status.Conditions = append(c.Status.Conditions, condition("Reconciling", "True", "Deleting", "waiting"))
		}},
		"no Ready is caught": {object: active, want: "Ready condition must always be present", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions = c.Status.Conditions[1:]
		}},
		"Ready beside Stalled is caught": {object: active, want: "Negative polarity", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions = append(c.Status.Conditions, condition("Stalled", "True", "NotOurs", "x"))
		}},
		"Reconciling beside Stalled is caught": {object: failed, want: "Only one of Reconciling", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions = append(c.Status.Conditions, condition("Reconciling", "True", "Progressing", "x"))
		}},
		"Reconciling False is caught": {object: failed, want: "Reconciling condition can be removed", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions[1] = condition("Reconciling", "False", "Progressing", "x")
		}},
		"a condition without a generation is caught": {object: active, want: "Missing ObservedGeneration", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions[1].ObservedGeneration = 0
		}},
		"Ready that speaks of an older spec is caught": {object: active, want: "ObservedGeneration is less than", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions[1].ObservedGeneration = 2
		}},
		"a generation from the future is caught": {object: active, want: "less than or equal", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.ObservedGeneration = 4
		}},
		"a reason nobody declared is caught": {object: active, want: `reason "Whatever" is not in the closed list`, breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions[1].Reason = "Whatever"
		}},
		"a message too long for a person is caught": {object: failed, want: "the message has 1025 bytes", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions[0].Message = strings.Repeat("a", 1025)
		}},
		"False without a word is caught": {object: failed, want: "NamespaceReady is False and does not say why", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions[2].Message = ""
		}},
		"a condition without a time is caught": {object: active, want: "has no time", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions[1].LastTransitionTime = metav1.Time{}
		}},
		"the same condition twice is caught": {object: active, want: "stands twice", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions = append(c.Status.Conditions, c.Status.Conditions[1])
		}},
		"not Ready for no reason is caught": {object: failed, want: "neither Reconciling nor Stalled", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions = []metav1.Condition{c.Status.Conditions[0], c.Status.Conditions[2]}
		}},
		"Failed that is not stalled is caught": {object: failed, want: "the phase is Failed and Stalled is not True", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Conditions[1] = condition("Reconciling", "True", "Progressing", "x")
		}},
		"a phase that the timeline does not know is caught": {object: active, want: "the last entry of the timeline is", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Phase = "Failed"
		}},
		"no phase is caught": {object: active, want: `the phase is ""`, breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Phase, c.Status.Timeline = "", nil
		}},
		"a timeline that repeats itself is caught": {object: active, want: "twice in a row", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Timeline[0].Phase = "Active"
		}},
		"a timeline that goes back is caught": {object: active, want: "goes back in time", breaks: func(c *v1alpha1.CloudSpace) {
			c.Status.Timeline[1].Time = metav1.NewTime(noon.Add(-time.Second))
		}},
		"a deleted object that is still active is caught": {object: active, want: "is being deleted and the phase is Active", breaks: func(c *v1alpha1.CloudSpace) {
			c.DeletionTimestamp = &noon
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			object := tt.object()
			if tt.breaks != nil {
				tt.breaks(object)
			}
			err := Check(t.Context(), object)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v, want nothing wrong", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want it to say %q", err, tt.want)
			}
		})
	}
}
