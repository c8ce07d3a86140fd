// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

var orphanDescription = prometheus.NewDesc("kubeopera_orphaned_namespace",
	"1 for a namespace that was made for a Tenant or CloudSpace that is no more.", []string{"namespace"}, nil)

// OrphanCollector tells of namespaces that outlived their owner, as the caches have it: somebody took the owner's finalizer off. It only
// tells. Whether they may go is for people to decide.
type OrphanCollector struct {
	Reader client.Reader
}

// Describe names what Collect tells.
func (c OrphanCollector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- orphanDescription
}

// Collect tells nothing at all when anything cannot be listed: without all owners, every namespace would look like an orphan.
func (c OrphanCollector) Collect(collected chan<- prometheus.Metric) {
	orphans, err := c.orphans(context.Background())
	if err != nil {
		return
	}
	for _, name := range orphans {
		collected <- prometheus.MustNewConstMetric(orphanDescription, prometheus.GaugeValue, 1, name)
	}
}

func (c OrphanCollector) orphans(ctx context.Context) ([]string, error) {
	namespaces, tenants, cloudSpaces := &corev1.NamespaceList{}, &v1alpha1.TenantList{}, &v1alpha1.CloudSpaceList{}
	// The namespaces come first: an owner is there before what is made for it.
	for _, list := range []client.ObjectList{namespaces, tenants, cloudSpaces} {
		if err := c.Reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	owners := sets.New[types.UID]()
	for i := range tenants.Items {
		owners.Insert(tenants.Items[i].UID)
	}
	for i := range cloudSpaces.Items {
		owners.Insert(cloudSpaces.Items[i].UID)
	}
	var orphans []string
	for i := range namespaces.Items {
		namespace := &namespaces.Items[i]
		owner, ours := namespace.Labels[v1alpha1.LabelOwnerUID]
		if ours && namespace.DeletionTimestamp.IsZero() && !owners.Has(types.UID(owner)) {
			orphans = append(orphans, namespace.Name)
		}
	}
	return orphans, nil
}
