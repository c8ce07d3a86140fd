// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditionstest holds what tests ask of every status of a Tenant or CloudSpace that is written: that kstatus,
// Flux and people read it as it is meant.
package conditionstest

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/fluxcd/pkg/runtime/conditions/check"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// camelCase is how types and reasons are written.
var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Check says everything that is wrong with the status of an object, or nil. It holds the object to Flux' own rules for
// conditions, to what kstatus makes of it, and to the rules of our status: reasons from the closed list, no message too
// long for a person, the phase as the last entry of the timeline, and Failed only with Stalled.
func Check(ctx context.Context, object client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("reading the object as a map: %w", err)
	}
	u := &unstructured.Unstructured{Object: content}
	found := conditions.UnstructuredGetter(u).GetConditions()
	return errors.Join(
		fluxRules(ctx, u),
		kstatusReads(u, found),
		eachCondition(found),
		phaseAndTimeline(u, found),
	)
}

// fluxRules are the strict rules and the warnings of Flux' own linter: both count here.
func fluxRules(ctx context.Context, u *unstructured.Unstructured) error {
	checker := check.NewChecker(nil, &check.Conditions{NegativePolarity: []string{"Stalled", "Reconciling"}})
	checker.DisableFetch = true
	fail, warn := checker.Check(ctx, conditions.UnstructuredGetter(u))
	return errors.Join(fail, warn)
}

// kstatusReads holds what kstatus computes against what the conditions mean.
func kstatusReads(u *unstructured.Unstructured, found []metav1.Condition) error {
	result, err := status.Compute(u)
	if err != nil {
		return fmt.Errorf("kstatus cannot read the object: %w", err)
	}
	if want := meaning(u, found); result.Status != want {
		return fmt.Errorf("kstatus reads %s (%s), want %s", result.Status, result.Message, want)
	}
	return nil
}

func meaning(u *unstructured.Unstructured, found []metav1.Condition) status.Status {
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	switch {
	case u.GetDeletionTimestamp() != nil:
		return status.TerminatingStatus
	case observed != u.GetGeneration():
		return status.InProgressStatus
	case meta.IsStatusConditionTrue(found, "Stalled"):
		return status.FailedStatus
	case meta.IsStatusConditionTrue(found, "Ready"):
		return status.CurrentStatus
	default:
		return status.InProgressStatus
	}
}

func eachCondition(found []metav1.Condition) error {
	reasons, err := closedList()
	if err != nil {
		return err
	}
	var errs []error
	seen := map[string]bool{}
	for _, c := range found {
		if seen[c.Type] {
			errs = append(errs, fmt.Errorf("condition %s stands twice", c.Type))
		}
		seen[c.Type] = true
		errs = append(errs, oneCondition(c, reasons))
	}
	ready := meta.FindStatusCondition(found, "Ready")
	suspended := ready != nil && ready.Reason == "CloudSpaceSuspended"
	if !suspended && !meta.IsStatusConditionTrue(found, "Ready") && !seen["Reconciling"] && !seen["Stalled"] {
		errs = append(errs, errors.New("not Ready, and neither Reconciling nor Stalled: nobody can tell whether it goes on"))
	}
	return errors.Join(errs...)
}

func oneCondition(c metav1.Condition, reasons map[string]bool) error {
	var errs []error
	if !camelCase.MatchString(c.Type) {
		errs = append(errs, fmt.Errorf("condition type %q is not in upper camel case", c.Type))
	}
	if !reasons[c.Reason] {
		errs = append(errs, fmt.Errorf("condition %s: reason %q is not in the closed list", c.Type, c.Reason))
	}
	if len(c.Message) > 1024 {
		errs = append(errs, fmt.Errorf("condition %s: the message has %d bytes", c.Type, len(c.Message)))
	}
	if c.LastTransitionTime.IsZero() {
		errs = append(errs, fmt.Errorf("condition %s has no time", c.Type))
	}
	if c.Status == metav1.ConditionFalse && c.Message == "" {
		errs = append(errs, fmt.Errorf("condition %s is False and does not say why", c.Type))
	}
	return errors.Join(errs...)
}

func phaseAndTimeline(u *unstructured.Unstructured, found []metav1.Condition) error {
	phase, _, _ := unstructured.NestedString(u.Object, "status", "phase")
	timeline, _, _ := unstructured.NestedSlice(u.Object, "status", "timeline")
	var errs []error
	last, lastTime := "", ""
	for _, entry := range timeline {
		transition, _ := entry.(map[string]any)
		entered, _ := transition["phase"].(string)
		at, _ := transition["time"].(string)
		if entered == last {
			errs = append(errs, fmt.Errorf("the timeline enters %s twice in a row", entered))
		}
		if at < lastTime {
			errs = append(errs, fmt.Errorf("the timeline goes back in time at %s", entered))
		}
		last, lastTime = entered, at
	}
	if phase == "" || phase != last {
		errs = append(errs, fmt.Errorf("the phase is %q, the last entry of the timeline is %q", phase, last))
	}
	if phase == "Failed" && !meta.IsStatusConditionTrue(found, "Stalled") {
		errs = append(errs, errors.New("the phase is Failed and Stalled is not True"))
	}
	if u.GetDeletionTimestamp() != nil && phase != "Deleting" {
		errs = append(errs, fmt.Errorf("the object is being deleted and the phase is %s", phase))
	}
	return errors.Join(errs...)
}
