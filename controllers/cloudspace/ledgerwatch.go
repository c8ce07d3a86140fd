// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ledgerTurned wakes those CloudSpaces of a tenant for which its ledger says something else than before: a tenant may have hundreds, and
// the ledger changes with each.
func (r *Reconciler) ledgerTurned() handler.EventHandler {
	all := func(ctx context.Context, object client.Object, queue requests) {
		for _, request := range r.list(ctx, client.InNamespace(names.TenantNamespace(object.GetName()))) {
			queue.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue requests) { all(ctx, e.Object, queue) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue requests) { all(ctx, e.Object, queue) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue requests) {
			before, isQuota := e.ObjectOld.(*v1alpha1.TenantQuota)
			after, alsoQuota := e.ObjectNew.(*v1alpha1.TenantQuota)
			if !isQuota || !alsoQuota || !equality.Semantic.DeepEqual(before.Status.Hard, after.Status.Hard) {
				all(ctx, e.ObjectNew, queue)
				return
			}
			for name := range ledgerDifference(before.Status, after.Status) {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: names.TenantNamespace(after.Name), Name: name}})
			}
		},
	}
}

// entry is what a ledger says of one CloudSpace.
type entry struct {
	Reservation v1alpha1.QuotaReservation
	Waiting     v1alpha1.QuotaWaiting
}

// ledgerDifference names the CloudSpaces of which two ledgers do not say the same.
func ledgerDifference(before, after v1alpha1.TenantQuotaStatus) map[string]bool {
	old, now, differ := entries(before), entries(after), map[string]bool{}
	for name, e := range old {
		if !equality.Semantic.DeepEqual(e, now[name]) {
			differ[name] = true
		}
	}
	for name := range now {
		if _, ok := old[name]; !ok {
			differ[name] = true
		}
	}
	return differ
}

func entries(status v1alpha1.TenantQuotaStatus) map[string]entry {
	all := map[string]entry{}
	for _, reservation := range status.Reservations {
		all[reservation.CloudSpace] = entry{Reservation: reservation}
	}
	for _, waiting := range status.Waiting {
		e := all[waiting.CloudSpace]
		e.Waiting = waiting
		all[waiting.CloudSpace] = e
	}
	return all
}
