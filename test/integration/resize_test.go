// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strconv"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// hostQuota is one of a host namespace.
func hostQuota(host, name string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: named(host, name)}
}

// counts has Kubernetes count so much memory of workloads.
func counts(t *testing.T, host, memory string) {
	t.Helper()
	counting := identity(t, "system:serviceaccount:kube-system:resourcequota-controller", masters)
	for _, name := range []string{"cloudspace-workload", "cloudspace"} {
		eventually(t, func(g gomega.Gomega) {
			found := get(t, hostQuota(host, name))
			found.Status.Used[corev1.ResourceRequestsMemory] = resource.MustParse(memory)
			g.Expect(counting.Status().Update(t.Context(), found)).To(gomega.Succeed())
		})
	}
}

// stand waits until the quotas have so much memory, and whether they follow the spec.
func stand(t *testing.T, space *v1alpha1.CloudSpace, follow bool, total, workloads string) {
	t.Helper()
	host := strings.Replace(space.Namespace, "tenant-", "vcluster-", 1)
	eventually(t, func(g gomega.Gomega) {
		for name, want := range map[string]string{"cloudspace": total, "cloudspace-control-plane": "1152Mi", "cloudspace-workload": workloads} {
			hard := get(t, hostQuota(host, name)).Spec.Hard[corev1.ResourceRequestsMemory]
			g.Expect(hard.String()).To(gomega.Equal(want), name)
		}
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(space), space)).To(gomega.Succeed())
		said := get(t, hostQuota(host, "cloudspace")).Annotations["tenancy.kubeopera.io/generation"]
		if generation := strconv.FormatInt(space.Generation, 10); follow {
			g.Expect(said).To(gomega.Equal(generation))
		} else {
			g.Expect(said).NotTo(gomega.Equal(generation))
		}
	})
}

// What is lowered follows the use, in its own time; what is raised is there at once.
func TestQuotasAreResized(t *testing.T) {
	t.Parallel()
	const id, host = "resize", "vcluster-resize"
	create(t, tenant(id))
	space := reach(t, cloudSpace(id, "default"), "Active")
	says(t, space, "Ready True Provisioned", "")
	stand(t, space, true, "4Gi", "2944Mi")
	counts(t, host, "2Gi")

	merge(t, space, `{"spec":{"resources":{"memory":"6Gi"}}}`)
	stand(t, space, true, "6Gi", "4992Mi")
	merge(t, space, `{"spec":{"resources":{"memory":"3Gi"}}}`)
	stand(t, space, false, "3200Mi", "2Gi")
	says(t, space, "PoliciesApplied False ResizeBlocked", "memory cannot be lowered to 3Gi yet: workloads use 2Gi, and 1920Mi would be left")
	says(t, space, "Ready True Provisioned", "")
	counts(t, host, "1984Mi")
	stand(t, space, false, "3136Mi", "1984Mi")
	counts(t, host, "1Gi")
	stand(t, space, true, "3Gi", "1920Mi")
	says(t, space, "PoliciesApplied True Succeeded", "")
	if told := space.Status.Resources.Memory; told.Hard.IsZero() {
		t.Errorf("the status tells %+v", told)
	}

	merge(t, space, `{"spec":{"resources":{"memory":"1Gi"}}}`)
	says(t, space, "UpToDate False ResourcesTooSmall", "at least")
	stand(t, space, false, "3Gi", "1920Mi")
	merge(t, space, `{"spec":{"resources":{"memory":"4Gi"}}}`)
	stand(t, space, true, "4Gi", "2944Mi")
	says(t, space, "Ready True Provisioned", "")
}

// A CloudSpace that is suspended has neither control plane nor workloads, keeps all else, and is left in peace; it comes back, and it
// can be deleted.
func TestACloudSpaceIsSuspended(t *testing.T) {
	t.Parallel()
	const id, host = "suspended", "vcluster-suspended"
	owner := reach(t, create(t, tenant(id)), "Ready")
	space := reach(t, cloudSpace(id, "default"), "Active")
	flux := &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id+"-flux")}
	replicas := func() [2]int32 {
		return [2]int32{*get(t, &appsv1.Deployment{ObjectMeta: named(host, id)}).Spec.Replicas, *get(t, &appsv1.StatefulSet{ObjectMeta: named(host, id+"-etcd")}).Spec.Replicas}
	}
	for range 2 {
		merge(t, space, `{"spec":{"suspend":true}}`)
		reach(t, space, "Suspended")
		says(t, space, "Ready False CloudSpaceSuspended", "neither control plane nor workloads run")
		reach(t, owner, "Suspended")
		if got := replicas(); got != [2]int32{} || !get(t, flux).Spec.Suspend {
			t.Errorf("replicas are %v, Flux lets go of what is inside: %v", got, flux.Spec.Suspend)
		}
		says(t, space, "KubeconfigReady True Succeeded", "")
		stand(t, space, true, "4Gi", "2944Mi")

		merge(t, space, `{"spec":{"suspend":false}}`)
		says(t, space, "Ready True Provisioned", "")
		reach(t, owner, "Ready")
		if got := replicas(); got != [2]int32{1, 1} || get(t, flux).Spec.Suspend {
			t.Errorf("replicas are %v, Flux holds on to what is inside: %v", got, !flux.Spec.Suspend)
		}
	}
	merge(t, space, `{"spec":{"suspend":true}}`)
	reach(t, space, "Suspended")
	remove(t, owner)
}
