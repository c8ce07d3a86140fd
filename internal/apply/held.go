// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Held says what keeps an object that is being deleted from going, as the object itself tells: its finalizers, and of a namespace
// what Kubernetes found left in it. Empty when it tells nothing.
func Held(object client.Object) string {
	var by []string
	if namespace, ok := object.(*corev1.Namespace); ok {
		by = heldInside(namespace)
	}
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		by = append(by, "held by finalizer "+strings.Join(finalizers, ", "))
	}
	return strings.Join(by, "; ")
}

// heldInside has what is left in a namespace, which finalizers hold that, and what Kubernetes could not delete or even look for.
func heldInside(namespace *corev1.Namespace) []string {
	var by []string
	for _, c := range namespace.Status.Conditions {
		if c.Status == corev1.ConditionTrue && c.Message != "" {
			by = append(by, c.Message)
		}
	}
	for _, finalizer := range namespace.Spec.Finalizers {
		if finalizer != corev1.FinalizerKubernetes {
			by = append(by, fmt.Sprintf("held by finalizer %s", finalizer))
		}
	}
	slices.Sort(by)
	return by
}
