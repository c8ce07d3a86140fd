// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// BenchmarkList lists ten CloudSpaces of a tenant, with few and with many others beside them: of the view as a member, and what is stored, in
// the tenant's namespace, as an administrator. The ratio is what the view costs.
func BenchmarkList(b *testing.B) {
	populate(b, "bench-own", 10)
	alice := customer("bench-alice", "bench-own")
	seen, err := dynamic.NewForConfig(alice.config())
	if err != nil {
		b.Fatal(err)
	}
	direct, err := dynamic.NewForConfig(adminConfig)
	if err != nil {
		b.Fatal(err)
	}
	for _, others := range []int{0, 2000} {
		for i := range others / 100 {
			populate(b, fmt.Sprintf("bench-%d", i), 100)
		}
		for name, list := range map[string]func(context.Context, metav1.ListOptions) (int, error){
			"view": func(ctx context.Context, o metav1.ListOptions) (int, error) {
				list, err := seen.Resource(cloudSpaces).List(ctx, o)
				if err != nil {
					return 0, err
				}
				return len(list.Items), nil
			},
			"stored": func(ctx context.Context, o metav1.ListOptions) (int, error) {
				list, err := direct.Resource(tenancyv1alpha1.SchemeGroupVersion.WithResource("cloudspaces")).Namespace("tenant-bench-own").List(ctx, o)
				if err != nil {
					return 0, err
				}
				return len(list.Items), nil
			},
		} {
			b.Run(fmt.Sprintf("%s/others=%d", name, others), func(b *testing.B) {
				for b.Loop() {
					if found, err := list(b.Context(), metav1.ListOptions{}); err != nil || found != 10 {
						b.Fatalf("%d: %v", found, err)
					}
				}
			})
		}
	}
}

// populate makes a tenant with CloudSpaces, for the time that the benchmark lasts.
func populate(b *testing.B, id string, count int) {
	b.Helper()
	tenant := &tenancyv1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: tenancyv1alpha1.TenantSpec{Members: []tenancyv1alpha1.Member{
		{Kind: tenancyv1alpha1.MemberUser, Name: "kubeopera:bench-alice", Role: tenancyv1alpha1.MemberViewer},
	}}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-" + id}}
	for _, o := range []client.Object{namespace, tenant} {
		if err := client.IgnoreAlreadyExists(admin.Create(b.Context(), o)); err != nil {
			b.Fatal(err)
		}
	}
	for i := range count {
		o := &tenancyv1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%d", i), Namespace: namespace.Name}}
		if err := client.IgnoreAlreadyExists(admin.Create(b.Context(), o)); err != nil {
			b.Fatal(err)
		}
	}
	b.Cleanup(func() { _ = admin.Delete(context.Background(), tenant) })
}
