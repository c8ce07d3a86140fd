// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"fmt"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
)

// Fields that objects of the view can be selected by, beside those of metadata.
const (
	StateField = "status.state"
	phaseField = "status.phase"
)

// phases are those that have a state of their own. All others, that of an object which nobody has looked at yet too, are provisioning.
var phases = map[viewv1alpha1.State]string{
	viewv1alpha1.StateActive:    string(tenancyv1alpha1.CloudSpaceActive),
	viewv1alpha1.StateFailed:    string(tenancyv1alpha1.CloudSpaceFailed),
	viewv1alpha1.StateSuspended: string(tenancyv1alpha1.CloudSpaceSuspended),
	viewv1alpha1.StateDeleting:  string(tenancyv1alpha1.CloudSpaceDeleting),
}

// stateOf gives the state of a phase.
func stateOf(phase string) viewv1alpha1.State {
	for state, own := range phases {
		if phase == own {
			return state
		}
	}
	if phase == string(tenancyv1alpha1.TenantReady) {
		return viewv1alpha1.StateActive
	}
	return viewv1alpha1.StateProvisioning
}

// SelectPhase turns a selector of states into one of phases.
func SelectPhase(selector fields.Selector) (fields.Selector, error) {
	var selectors []fields.Selector
	for _, r := range selector.Requirements() {
		if r.Field != StateField {
			selectors = append(selectors, keep(r))
			continue
		}
		phase, err := selectPhase(r)
		if err != nil {
			return nil, err
		}
		selectors = append(selectors, phase...)
	}
	return fields.AndSelectors(selectors...), nil
}

func keep(r fields.Requirement) fields.Selector {
	if r.Operator == selection.NotEquals {
		return fields.OneTermNotEqualSelector(r.Field, r.Value)
	}
	return fields.OneTermEqualSelector(r.Field, r.Value)
}

func selectPhase(r fields.Requirement) ([]fields.Selector, error) {
	state := viewv1alpha1.State(r.Value)
	phase, own := phases[state]
	switch not := r.Operator == selection.NotEquals; {
	case own && not:
		return []fields.Selector{fields.OneTermNotEqualSelector(phaseField, phase)}, nil
	case own:
		return []fields.Selector{fields.OneTermEqualSelector(phaseField, phase)}, nil
	case state != viewv1alpha1.StateProvisioning:
		return nil, fmt.Errorf("%s is one of provisioning, active, failed, suspended and deleting, not %q", StateField, r.Value)
	case not:
		return nil, fmt.Errorf("%s!=%s cannot be selected: ask for one state, or leave several out", StateField, r.Value)
	}
	var all []fields.Selector
	for _, phase := range phases {
		all = append(all, fields.OneTermNotEqualSelector(phaseField, phase))
	}
	return all, nil
}
