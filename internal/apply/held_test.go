// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatHoldsAnObjectIsNamed(t *testing.T) {
	says := func(kind corev1.NamespaceConditionType, status corev1.ConditionStatus, message string) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: kind, Status: status, Message: message}
	}
	tests := map[string]struct {
		object client.Object
		want   string
	}{
		"nothing":                 {&corev1.Secret{}, ""},
		"finalizers":              {&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a/b", "c/d"}}}, "held by finalizer a/b, c/d"},
		"a namespace just begins": {&corev1.Namespace{Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}}, ""},
		"what is left in a namespace": {&corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
			says(corev1.NamespaceDeletionDiscoveryFailure, corev1.ConditionFalse, "All resources successfully discovered"),
			says(corev1.NamespaceContentRemaining, corev1.ConditionTrue, "Some resources are remaining: configmaps. has 1 resource instances"),
			says(corev1.NamespaceFinalizersRemaining, corev1.ConditionTrue, "Some content in the namespace has finalizers remaining: a/b in 1 resource instances"),
		}}}, "Some content in the namespace has finalizers remaining: a/b in 1 resource instances; Some resources are remaining: configmaps. has 1 resource instances"},
		"finalizers of the namespace itself": {&corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"a/b"}},
			Spec:       corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes", "c/d"}},
		}, "held by finalizer c/d; held by finalizer a/b"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Held(tt.object); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
