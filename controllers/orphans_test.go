// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func TestNamespacesThatOutlivedTheirOwnersAreTold(t *testing.T) {
	namespace := func(name, owner string, alter ...func(*corev1.Namespace)) client.Object {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"tenancy.kubeopera.io/tenant": "a"}}}
		if owner != "" {
			n.Labels["tenancy.kubeopera.io/owner-uid"] = owner
		}
		for _, a := range alter {
			a(n)
		}
		return n
	}
	goes := func(n *corev1.Namespace) {
		n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"a/b"}
	}
	meta := func(namespace, name, uid string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}
	}
	world := []client.Object{
		&v1alpha1.Tenant{ObjectMeta: meta("", "a", "tenant")}, &v1alpha1.CloudSpace{ObjectMeta: meta("tenant-a", "default", "space")},
		namespace("tenant-a", "tenant"), namespace("vcluster-a", "space"), namespace("vcluster-a--left", "gone"), namespace("tenant-b", "other"),
		namespace("vcluster-a--going", "gone", goes), namespace("tenant-made-beforehand", ""),
	}
	tests := map[string]struct {
		fails client.ObjectList
		want  string
	}{
		"those whose owner is gone": {want: `
# HELP kubeopera_orphaned_namespace 1 for a namespace that was made for a Tenant or CloudSpace that is no more.
# TYPE kubeopera_orphaned_namespace gauge
kubeopera_orphaned_namespace{namespace="tenant-b"} 1
kubeopera_orphaned_namespace{namespace="vcluster-a--left"} 1
`},
		"Tenants cannot be listed":     {fails: &v1alpha1.TenantList{}},
		"CloudSpaces cannot be listed": {fails: &v1alpha1.CloudSpaceList{}},
		"namespaces cannot be listed":  {fails: &corev1.NamespaceList{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(world...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					if kindOf(list) == kindOf(tt.fails) {
						return errors.New("no")
					}
					return c.List(ctx, list, options...)
				},
			}).Build()
			if err := testutil.CollectAndCompare(OrphanCollector{Reader: reader}, strings.NewReader(tt.want)); err != nil {
				t.Error(err)
			}
		})
	}
}
