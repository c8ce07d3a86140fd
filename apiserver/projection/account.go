// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
)

// Account turns a stored Tenant into the view's Account. What is passed in is changed.
func Account(o *unstructured.Unstructured) {
	showMetadata(o)
	o.SetManagedFields(nil) // of a Tenant, which has other fields
	o.SetAPIVersion(viewv1alpha1.SchemeGroupVersion.String())
	o.SetKind("Account")
	if spec, found := o.Object["spec"].(object); found {
		o.Object["spec"] = take(object{}, spec, "displayName", "members")
	}
	if status, found := o.Object["status"].(object); found {
		o.Object["status"] = accountStatus(status)
	}
}

func accountStatus(stored object) object {
	phase, _ := stored["phase"].(string)
	shown := object{"state": string(stateOf(phase))}
	take(shown, stored, "namespace", "quota", "cloudSpaces")
	if timeline := showTimeline(stored); len(timeline) > 0 {
		shown["timeline"] = timeline
	}
	return shown
}
