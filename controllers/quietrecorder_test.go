// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func kindOf(object any) string { return fmt.Sprintf("%T", object) }

func TestNoEventsAreSentWhereTheyWouldBeRefused(t *testing.T) {
	in := func(namespace string) runtime.Object {
		return &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	}
	tests := map[string]struct {
		regarding runtime.Object
		want      int
	}{
		"in a namespace that stays":            {in("tenant-a"), 1},
		"in a namespace that is being deleted": {in("tenant-b"), 0},
		"in a namespace that is not known":     {in("default"), 1},
		"on an object of the whole cluster":    {&v1alpha1.Tenant{}, 1},
	}
	reader := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-a"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-b", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{"a/b"}}},
	).Build()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			recorded := events.NewFakeRecorder(1)
			quietRecorder{EventRecorder: recorded, namespaces: reader}.Eventf(tt.regarding, nil, "Normal", "Why", "Reconcile", "%s", "note")
			if got := len(recorded.Events); got != tt.want {
				t.Errorf("%d events, want %d", got, tt.want)
			}
		})
	}
}
