// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/words"
)

type object = map[string]any

// CloudSpace turns a stored CloudSpace into the view's. What is passed in is changed.
func CloudSpace(o *unstructured.Unstructured) {
	showMetadata(o)
	o.SetAPIVersion(viewv1alpha1.SchemeGroupVersion.String())
	if status, found := o.Object["status"].(object); found {
		o.Object["status"] = cloudSpaceStatus(status)
	}
}

// StoredCloudSpace turns a CloudSpace of the view into one to store, in place of the one that is stored, if there is one. What is passed in
// is changed.
func StoredCloudSpace(o, stored *unstructured.Unstructured) {
	storeMetadata(o, stored)
	o.SetAPIVersion(tenancyv1alpha1.SchemeGroupVersion.String())
	// A status is written by the operator alone; kube-apiserver would not take it here either.
	delete(o.Object, "status")
}

func cloudSpaceStatus(stored object) object {
	phase, _ := stored["phase"].(string)
	shown := object{"state": string(stateOf(phase))}
	take(shown, stored, "observedGeneration", "endpoint", "versions", "resources")
	if kubeconfig, found := stored["kubeconfig"].(object); found {
		set(shown, "kubeconfig", take(object{}, kubeconfig, "expires", "warning"))
	}
	if retry, found := stored["retry"].(object); found {
		set(shown, "retry", take(object{}, retry, "attempts", "nextRetryTime", "lastHandledRequest"))
	}
	if conditions, found := stored["conditions"].([]any); found {
		all := showConditions(conditions)
		shown["conditions"] = all
		if text := readyMessage(all); text != "" {
			shown["message"] = text
		}
	}
	if timeline := showTimeline(stored); len(timeline) > 0 {
		shown["timeline"] = timeline
	}
	return shown
}

// take copies fields as they are.
func take(to, from object, keys ...string) object {
	for _, key := range keys {
		if value, found := from[key]; found {
			to[key] = value
		}
	}
	return to
}

func set(to object, key string, value object) {
	if len(value) > 0 {
		to[key] = value
	}
}

func showConditions(stored []any) []any {
	shown := make([]any, 0, len(stored))
	for _, each := range stored {
		condition, ok := each.(object)
		if !ok {
			continue
		}
		reason, _ := condition["reason"].(string)
		said, _ := condition["message"].(string)
		one := take(object{}, condition, "type", "status", "reason", "lastTransitionTime", "observedGeneration")
		one["message"] = ""
		if said != "" {
			one["message"] = words.Of(reason, said)
		}
		shown = append(shown, one)
	}
	return shown
}

func readyMessage(conditions []any) string {
	for _, each := range conditions {
		if condition, ok := each.(object); ok && condition["type"] == tenancyv1alpha1.ConditionReady {
			text, _ := condition["message"].(string)
			return text
		}
	}
	return ""
}

// showTimeline turns phases into states. Several phases are one state: it was entered with the first of them.
func showTimeline(stored object) []any {
	phases, _ := stored["timeline"].([]any)
	var shown []any
	last := viewv1alpha1.State("")
	for _, each := range phases {
		entered, ok := each.(object)
		if !ok {
			continue
		}
		phase, _ := entered["phase"].(string)
		if state := stateOf(phase); state != last {
			shown = append(shown, object{"state": string(state), "time": entered["time"]})
			last = state
		}
	}
	return shown
}
