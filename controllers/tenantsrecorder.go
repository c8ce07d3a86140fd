// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/words"
)

// tenantsRecorder records events on CloudSpaces in words for tenants: they are in the tenant's namespace, whose members read them. Each is
// recorded on the CloudSpace of the view too, where a member's kubectl describe looks. What administrators need to know beyond that stands in
// the conditions.
type tenantsRecorder struct{ events.EventRecorder }

// Eventf records an event.
func (r tenantsRecorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) { //nolint:revive // the interface has as many.
	cloudSpace, ok := regarding.(*v1alpha1.CloudSpace)
	if !ok {
		r.EventRecorder.Eventf(regarding, related, kind, reason, action, note, args...)
		return
	}
	told := words.OfEvent(kind == corev1.EventTypeWarning, reason, fmt.Sprintf(note, args...))
	r.EventRecorder.Eventf(cloudSpace, related, kind, reason, action, "%s", told)
	r.EventRecorder.Eventf(inView(cloudSpace), related, kind, reason, action, "%s", told)
}

// inView is the CloudSpace of the view.
func inView(cloudSpace *v1alpha1.CloudSpace) *viewv1alpha1.CloudSpace {
	seen := &viewv1alpha1.CloudSpace{ObjectMeta: *cloudSpace.ObjectMeta.DeepCopy()}
	seen.SetGroupVersionKind(viewv1alpha1.SchemeGroupVersion.WithKind("CloudSpace"))
	seen.UID = types.UID(names.ViewUID(string(cloudSpace.UID)))
	return seen
}
