// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// announce tells, in events, of each phase that is entered and of what keeps the Tenant from getting on.
func (r *Reconciler) announce(object *v1alpha1.Tenant, before v1alpha1.TenantStatus) {
	ready := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionReady)
	if object.Status.Phase == before.Phase || ready == nil {
		return
	}
	kind, note := corev1.EventTypeNormal, "the Tenant is "+string(object.Status.Phase)
	if object.Status.Phase == v1alpha1.TenantFailed {
		kind, note = corev1.EventTypeWarning, ready.Message
	}
	r.Recorder.Eventf(object, nil, kind, string(object.Status.Phase), "Reconcile", "%s", note)
}
