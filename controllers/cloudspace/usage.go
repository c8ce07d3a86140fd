// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// usagePause is how long a status waits with what is used of a CloudSpace after it told it last: pods come and go, and each change would be
// a write.
const usagePause = 30 * time.Second

// usageOf is what Kubernetes counts in the host namespace.
func usageOf(s *scope) v1alpha1.CloudSpaceUsage {
	q := s.observed.quotas
	if !q.complete() || len(q.total.Status.Used) == 0 || len(q.controlPlane.Status.Used) == 0 || len(q.workloads.Status.Used) == 0 {
		return s.object.Status.Resources
	}
	return v1alpha1.CloudSpaceUsage{
		CPU:     podUsage(q, corev1.ResourceRequestsCPU),
		Memory:  podUsage(q, corev1.ResourceRequestsMemory),
		Storage: storageUsage(q.total, s.object.Spec.ControlPlane),
		Pods:    podUsage(q, corev1.ResourcePods),
	}
}

func podUsage(q quotas, name corev1.ResourceName) v1alpha1.ResourceUsage {
	return v1alpha1.ResourceUsage{
		Hard:         q.total.Status.Hard[name],
		ControlPlane: q.controlPlane.Status.Used[name],
		Workloads:    q.workloads.Status.Used[name],
		Free:         difference(q.workloads.Status.Hard[name], q.workloads.Status.Used[name]),
	}
}

// storageUsage takes etcd's volumes for the control plane's: there is no quota of them alone.
func storageUsage(total *corev1.ResourceQuota, controlPlane v1alpha1.ControlPlane) v1alpha1.ResourceUsage {
	hard, used := total.Status.Hard[corev1.ResourceRequestsStorage], total.Status.Used[corev1.ResourceRequestsStorage]
	etcd := times(controlPlane.Etcd.Storage, int64(membersOf(controlPlane).etcd))
	if etcd.Cmp(used) > 0 {
		etcd = used
	}
	return v1alpha1.ResourceUsage{Hard: hard, ControlPlane: etcd, Workloads: difference(used, etcd), Free: difference(hard, used)}
}

// difference is never less than nothing.
func difference(a, b resource.Quantity) resource.Quantity {
	const it = corev1.ResourceName("it")
	return minus(corev1.ResourceList{it: a}, corev1.ResourceList{it: b})[it]
}

// tellUsage puts what is used into a status, if it is time.
func tellUsage(status *v1alpha1.CloudSpaceStatus, usage v1alpha1.CloudSpaceUsage, now time.Time) {
	if equality.Semantic.DeepEqual(status.Resources, usage) || usageWait(status.ResourcesTime, now) > 0 {
		return
	}
	at := metav1.NewTime(now)
	status.Resources, status.ResourcesTime = usage, &at
}

// usageDue is when to look again because a status does not tell what is used now; zero when it does.
func usageDue(status v1alpha1.CloudSpaceStatus, usage v1alpha1.CloudSpaceUsage, now time.Time) time.Duration {
	if equality.Semantic.DeepEqual(status.Resources, usage) {
		return 0
	}
	return max(time.Millisecond, usageWait(status.ResourcesTime, now))
}

// usageWait is how long it is until a status may tell again. A time that is still to come is of a clock that was ahead.
func usageWait(last *metav1.Time, now time.Time) time.Duration {
	if last == nil || last.After(now) {
		return 0
	}
	return usagePause - now.Sub(last.Time)
}
