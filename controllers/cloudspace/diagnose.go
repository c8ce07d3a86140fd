// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// diagnosis is why a control plane does not run, as an operator of Kubernetes would find it.
type diagnosis struct {
	reason, message string
	// pod is the one it was found on, if starting that pod anew can help.
	pod *corev1.Pod
}

// diagnose finds the first thing that is wrong: pods that may not be made, then pods that get no node, then containers that do
// not start or do not stay. Nil means that nothing is wrong that time would not mend.
func diagnose(pods []corev1.Pod, apiServer *appsv1.Deployment) *diagnosis {
	if found := refused(apiServer); found != nil {
		return found
	}
	for i := range pods {
		if found := unscheduled(&pods[i]); found != nil {
			return found
		}
	}
	for i := range pods {
		statuses := append(append([]corev1.ContainerStatus{}, pods[i].Status.InitContainerStatuses...), pods[i].Status.ContainerStatuses...)
		for j := range statuses {
			if found := notStarting(&statuses[j]); found != nil {
				found.pod = &pods[i]
				return found
			}
		}
	}
	return nil
}

// refused reads what the Deployment says about pods that it could not make: a quota or an admission policy is in the way.
func refused(deployment *appsv1.Deployment) *diagnosis {
	if deployment == nil {
		return nil
	}
	for _, c := range deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return &diagnosis{reason: v1alpha1.ReasonPodsRefused, message: c.Message}
		}
	}
	return nil
}

func unscheduled(pod *corev1.Pod) *diagnosis {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return &diagnosis{reason: v1alpha1.ReasonUnschedulable, message: c.Message}
		}
	}
	return nil
}

func notStarting(status *corev1.ContainerStatus) *diagnosis {
	waiting := status.State.Waiting
	if waiting == nil {
		return nil
	}
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
		return &diagnosis{reason: v1alpha1.ReasonImagePullFailed, message: fmt.Sprintf("image %s cannot be pulled", status.Image)}
	case "CrashLoopBackOff":
		return crashing(status)
	case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
		return &diagnosis{reason: v1alpha1.ReasonContainerNotCreated, message: fmt.Sprintf("container %s: %s", status.Name, waiting.Message)}
	default:
		return nil
	}
}

func crashing(status *corev1.ContainerStatus) *diagnosis {
	last := status.LastTerminationState.Terminated
	if last == nil {
		return &diagnosis{reason: v1alpha1.ReasonCrashLooping, message: fmt.Sprintf("container %s ends again and again", status.Name)}
	}
	if last.Reason == "OOMKilled" {
		return &diagnosis{reason: v1alpha1.ReasonOutOfMemory, message: fmt.Sprintf("container %s needs more memory than its limit", status.Name)}
	}
	return &diagnosis{reason: v1alpha1.ReasonCrashLooping, message: strings.TrimSpace(fmt.Sprintf("container %s ended with exit code %d %s", status.Name, last.ExitCode, last.Message))}
}
