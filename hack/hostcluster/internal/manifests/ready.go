// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Missing returns what is not ready yet, in words, or nothing if the node called nodeName, DNS and Flux are. What was last
// said before since does not count: after a hard end the cluster's data still tells of a node and pods that are gone.
func Missing(ctx context.Context, client kubernetes.Interface, nodeName string, since time.Time) ([]string, error) {
	// Times in objects have no fractions of seconds.
	since = since.Truncate(time.Second)
	var missing []string
	ready, err := nodeReady(ctx, client, nodeName, since)
	if err != nil {
		return nil, fmt.Errorf("look at the node: %w", err)
	}
	if !ready {
		missing = append(missing, "node")
	}
	for namespace, names := range deployments() {
		for _, name := range names {
			ready, err := deploymentReady(ctx, client, namespace, name, since)
			if err != nil {
				return nil, fmt.Errorf("look at deployment %s: %w", name, err)
			}
			if !ready {
				missing = append(missing, name)
			}
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// deployments are the names of those that must be available, by namespace.
func deployments() map[string][]string {
	flux := []string{}
	for _, controller := range controllers() {
		flux = append(flux, controller.Name)
	}
	return map[string][]string{dnsNamespace: {"coredns"}, FluxNamespace: flux}
}

// nodeReady asks for the lease too, which kubelet renews every few seconds.
func nodeReady(ctx context.Context, client kubernetes.Interface, name string, since time.Time) (bool, error) {
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(since) {
		return false, nil
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}), nil
}

func deploymentReady(ctx context.Context, client kubernetes.Interface, namespace, name string, since time.Time) (bool, error) {
	deployment, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !available(deployment) {
		return false, nil
	}
	selector := metav1.FormatLabelSelector(deployment.Spec.Selector)
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return runsSince(pod, since) }), nil
}

func available(deployment *appsv1.Deployment) bool {
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return false
	}
	return slices.ContainsFunc(deployment.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	})
}

// runsSince says whether every container of the pod is ready and was started no earlier than since.
func runsSince(pod corev1.Pod, since time.Time) bool {
	for _, container := range pod.Status.ContainerStatuses {
		running := container.State.Running
		if !container.Ready || running == nil || running.StartedAt.Time.Before(since) {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}
