// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is one of the control plane, with what its containers are in.
func pod(name string, containers ...corev1.ContainerStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "vcluster-alice-default", UID: "uid-pod", Labels: map[string]string{"release": "alice-default"}},
		Spec:       corev1.PodSpec{PriorityClassName: "cloudspace-control-plane"},
		Status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: containers,
		},
	}
}

// unplaced is a pod that got no node.
func unplaced(name, reason string) corev1.Pod {
	p := pod(name)
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse},
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: "0/3 nodes are available: 3 Insufficient memory."},
	}
	return p
}

// initializing is a pod one of whose init containers is in a state.
func initializing(name string, status corev1.ContainerStatus) corev1.Pod {
	p := pod(name, waiting("PodInitializing", ""))
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "done", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}, status}
	return p
}

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: "syncer", Image: "ghcr.io/loft-sh/vcluster-oss:0.36.1",
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}
}

// endedAs is a container that waits for its next start after an end.
func endedAs(reason string, code int32, message string) corev1.ContainerStatus {
	c := waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")
	c.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: message}
	return c
}

func running() corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "syncer", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
}

func refusing(d *appsv1.Deployment) {
	d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota: cloudspace",
	})
}

func TestDiagnose(t *testing.T) {
	const noNodes, noImage = "0/3 nodes are available: 3 Insufficient memory.", "image ghcr.io/loft-sh/vcluster-oss:0.36.1 cannot be pulled"
	tests := map[string]struct {
		pods      []corev1.Pod
		apiServer *appsv1.Deployment
		// want is a reason and message; wantPod is the one to start anew. None of them means that nothing is wrong.
		wantReason, wantMessage, wantPod string
	}{
		"there is nothing yet": {},
		"everything runs":      {pods: []corev1.Pod{pod("api", running()), pod("etcd", running())}, apiServer: runningAPIServer()},
		"it is being started": {
			pods: []corev1.Pod{pod("api", waiting("ContainerCreating", "")), initializing("etcd", waiting("PodInitializing", ""))},
		},
		"a pod that nobody has looked at":        {pods: []corev1.Pod{{}}},
		"a pod that is not to be scheduled yet":  {pods: []corev1.Pod{unplaced("api", "SchedulingGated")}},
		"a container that ended and starts anew": {pods: []corev1.Pod{pod("api", corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: 1}}})}},
		"a container that ended once, and runs": {
			pods: []corev1.Pod{pod("api", corev1.ContainerStatus{
				State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}},
			})},
		},

		"its pods may not be made": {
			apiServer: runningAPIServer(refusing), wantReason: "PodsRefused", wantMessage: "exceeded quota: cloudspace",
		},
		"its pods may be made again": {
			apiServer: runningAPIServer(refusing, func(d *appsv1.Deployment) { d.Status.Conditions[1].Status = corev1.ConditionFalse }),
		},
		"a pod gets no node": {pods: []corev1.Pod{unplaced("api", "Unschedulable")}, wantReason: "Unschedulable", wantMessage: noNodes},

		"an image cannot be pulled":       {pods: []corev1.Pod{pod("api", waiting("ErrImagePull", "429"))}, wantReason: "ImagePullFailed", wantMessage: noImage, wantPod: "api"},
		"an image is waited for":          {pods: []corev1.Pod{pod("api", waiting("ImagePullBackOff", "429"))}, wantReason: "ImagePullFailed", wantMessage: noImage, wantPod: "api"},
		"an image has no valid name":      {pods: []corev1.Pod{pod("api", waiting("InvalidImageName", ""))}, wantReason: "ImagePullFailed", wantMessage: noImage, wantPod: "api"},
		"an image may not be pulled":      {pods: []corev1.Pod{pod("api", waiting("ErrImageNeverPull", ""))}, wantReason: "ImagePullFailed", wantMessage: noImage, wantPod: "api"},
		"a Secret of a container is none": {pods: []corev1.Pod{pod("api", waiting("CreateContainerConfigError", `secret "x" not found`))}, wantReason: "ContainerNotCreated", wantMessage: `container syncer: secret "x" not found`, wantPod: "api"},
		"a container cannot be made":      {pods: []corev1.Pod{pod("api", waiting("CreateContainerError", "name is taken"))}, wantReason: "ContainerNotCreated", wantMessage: "container syncer: name is taken", wantPod: "api"},
		"a container cannot be run":       {pods: []corev1.Pod{pod("api", waiting("RunContainerError", "no such file"))}, wantReason: "ContainerNotCreated", wantMessage: "container syncer: no such file", wantPod: "api"},

		"a container ends, and why is not known": {
			pods:       []corev1.Pod{pod("api", waiting("CrashLoopBackOff", "back-off"))},
			wantReason: "CrashLooping", wantMessage: "container syncer ends again and again", wantPod: "api",
		},
		"a container ends with a message": {
			pods:       []corev1.Pod{pod("api", endedAs("Error", 2, "no license\n"))},
			wantReason: "CrashLooping", wantMessage: "container syncer ended with exit code 2 no license", wantPod: "api",
		},
		"a container ends without a message": {
			pods:       []corev1.Pod{pod("api", endedAs("Error", 1, ""))},
			wantReason: "CrashLooping", wantMessage: "container syncer ended with exit code 1", wantPod: "api",
		},
		"a container that ends well ends all the same": {
			pods:       []corev1.Pod{pod("api", endedAs("Completed", 0, ""))},
			wantReason: "CrashLooping", wantMessage: "container syncer ended with exit code 0", wantPod: "api",
		},
		"a container has too little memory": {
			pods:       []corev1.Pod{pod("api", endedAs("OOMKilled", 137, "x"))},
			wantReason: "OutOfMemory", wantMessage: "container syncer needs more memory than its limit", wantPod: "api",
		},

		"the second container":         {pods: []corev1.Pod{pod("api", running(), endedAs("Error", 1, ""))}, wantReason: "CrashLooping", wantMessage: "container syncer ended with exit code 1", wantPod: "api"},
		"an init container":            {pods: []corev1.Pod{initializing("api", endedAs("Error", 1, ""))}, wantReason: "CrashLooping", wantMessage: "container syncer ended with exit code 1", wantPod: "api"},
		"an init container's image":    {pods: []corev1.Pod{initializing("api", waiting("ImagePullBackOff", ""))}, wantReason: "ImagePullFailed", wantMessage: noImage, wantPod: "api"},
		"the pod behind one that runs": {pods: []corev1.Pod{pod("etcd", running()), pod("api", waiting("ErrImagePull", ""))}, wantReason: "ImagePullFailed", wantMessage: noImage, wantPod: "api"},

		"refused pods come before one without a node": {
			pods: []corev1.Pod{unplaced("etcd", "Unschedulable")}, apiServer: runningAPIServer(refusing), wantReason: "PodsRefused", wantMessage: "exceeded quota: cloudspace",
		},
		"a pod without a node comes before a container that does not stay": {
			pods: []corev1.Pod{pod("api", endedAs("OOMKilled", 137, "")), unplaced("etcd", "Unschedulable")}, wantReason: "Unschedulable", wantMessage: noNodes,
		},
		"the first pod comes before the second": {
			pods:       []corev1.Pod{pod("etcd", endedAs("OOMKilled", 137, "")), pod("api", waiting("ErrImagePull", ""))},
			wantReason: "OutOfMemory", wantMessage: "container syncer needs more memory than its limit", wantPod: "etcd",
		},
		"an init container comes before the others": {
			pods: []corev1.Pod{func() corev1.Pod {
				p := initializing("api", waiting("ErrImagePull", ""))
				p.Status.ContainerStatuses = []corev1.ContainerStatus{endedAs("OOMKilled", 137, "")}
				return p
			}()},
			wantReason: "ImagePullFailed", wantMessage: noImage, wantPod: "api",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := diagnose(tt.pods, tt.apiServer)
			if got == nil {
				if tt.wantReason != "" {
					t.Errorf("nothing was found, want %s: %s", tt.wantReason, tt.wantMessage)
				}
				return
			}
			if got.reason != tt.wantReason || got.message != tt.wantMessage {
				t.Errorf("got %s: %q, want %s: %q", got.reason, got.message, tt.wantReason, tt.wantMessage)
			}
			if pod := nameOf(got.pod); pod != tt.wantPod {
				t.Errorf("found on pod %q, want %q", pod, tt.wantPod)
			}
		})
	}
}

func nameOf(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	return pod.Name
}

// Kubernetes may have new reasons, or runtimes of their own: what is not known is not said to be wrong.
func TestAReasonThatIsNotKnownIsNoDiagnosis(t *testing.T) {
	for _, reason := range []string{"", "ContainerCreating", "PodInitializing", "RestartingContainer", "crashloopbackoff", "SomethingNew"} {
		t.Run(reason, func(t *testing.T) {
			status := waiting(reason, "x")
			if got := notStarting(&status); got != nil {
				t.Errorf("got %s: %s, want none", got.reason, got.message)
			}
		})
	}
}
