// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// notRunning names what of the control plane does not run as its release makes it; empty when all does.
func (o observed) notRunning() string {
	wanted := writtenRevision(o.controlPlane)
	switch {
	case o.etcd == nil || o.etcd.Annotations[annotationRevision] != wanted || !rolledOut(o.etcd):
		return "etcd of the control plane"
	case o.apiServer == nil || o.apiServer.Annotations[annotationRevision] != wanted || !complete(o.apiServer):
		return "the API server of the control plane"
	default:
		return ""
	}
}

// rolledOut tells whether all members of a StatefulSet are ready and none is of an earlier revision.
func rolledOut(s *appsv1.StatefulSet) bool {
	want := replicas(s.Spec.Replicas)
	return s.Status.ObservedGeneration == s.Generation && s.Status.ReadyReplicas == want && s.Status.UpdatedReplicas == want
}

// complete tells whether a Deployment is available and none of its pods is of an earlier revision.
func complete(d *appsv1.Deployment) bool {
	want := replicas(d.Spec.Replicas)
	return available(d) && d.Status.UpdatedReplicas == want && d.Status.Replicas == want && d.Status.AvailableReplicas == want
}

func replicas(specified *int32) int32 {
	if specified == nil {
		return 1
	}
	return *specified
}

func available(deployment *appsv1.Deployment) bool {
	if deployment.Status.ObservedGeneration != deployment.Generation {
		return false
	}
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
