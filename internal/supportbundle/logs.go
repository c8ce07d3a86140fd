// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/internal/names"
)

// Bounds of the log of one container: the newest lines, and of those the first bytes.
const (
	maxLogLines int64 = 2000
	maxLogBytes int64 = 1 << 20
)

// logs collects those of all containers of a namespace's pods.
func (c *collector) logs(ctx context.Context, namespace string, o metav1.ListOptions) error {
	return c.logsOf(ctx, namespace, o, func(*corev1.Pod) bool { return true })
}

// controlPlaneLogs leaves out the pods of the tenant: their logs are the tenant's.
func (c *collector) controlPlaneLogs(ctx context.Context, namespace string) error {
	return c.logsOf(ctx, namespace, metav1.ListOptions{}, func(pod *corev1.Pod) bool {
		return pod.Spec.PriorityClassName == names.ControlPlanePriorityClass
	})
}

func (c *collector) logsOf(ctx context.Context, namespace string, o metav1.ListOptions, wanted func(*corev1.Pod) bool) error {
	list, err := c.typed.CoreV1().Pods(namespace).List(ctx, o)
	if err != nil {
		return err
	}
	var errs []error
	for i := range list.Items {
		if pod := &list.Items[i]; wanted(pod) {
			errs = append(errs, c.podLogs(ctx, pod))
		}
	}
	return errors.Join(errs...)
}

// podLogs collects the log of each container that ever ran, and that of its run before.
func (c *collector) podLogs(ctx context.Context, pod *corev1.Pod) error {
	var errs []error
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			if status := &statuses[i]; status.ContainerID != "" {
				errs = append(errs, c.log(ctx, pod, status.Name, false))
				if status.RestartCount > 0 {
					errs = append(errs, c.log(ctx, pod, status.Name, true))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (c *collector) log(ctx context.Context, pod *corev1.Pod, container string, previous bool) error {
	lines, bytes := maxLogLines, maxLogBytes
	text, err := c.typed.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: previous, Timestamps: true, TailLines: &lines, LimitBytes: &bytes,
	}).DoRaw(ctx)
	name := fmt.Sprintf("logs/%s/%s/%s.log", pod.Namespace, pod.Name, container)
	if previous {
		name += ".previous"
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return c.archive.add(name, []byte(redact(string(text))))
}
