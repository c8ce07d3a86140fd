// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenantquota

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=tenantquotas,verbs=get;list;watch
// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=tenantquotas/status,verbs=patch
// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=cloudspaces,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces;resourcequotas,verbs=get;list;watch

// SetupWithManager adds the reconciler to a manager: what wakes it, and how many TenantQuotas are worked on at a time.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, concurrency int) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &corev1.Namespace{}, hostNamespaces, tenantOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("tenantquota").
		For(&v1alpha1.TenantQuota{}).
		Watches(&v1alpha1.CloudSpace{}, handler.EnqueueRequestsFromMapFunc(byNamespace), builder.WithPredicates(predicate.Funcs{UpdateFunc: asksAnew})).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(byLabels), builder.WithPredicates(predicate.Funcs{UpdateFunc: never})).
		Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(byLabels), builder.WithPredicates(predicate.Funcs{UpdateFunc: holdsAnew})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				r.Platform.Backoff.Base.Duration, r.Platform.Backoff.Max.Duration),
		}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// hostNamespaces is an index: the host namespaces of a tenant, by its id.
const hostNamespaces = "hostNamespaces"

// tenantOf indexes what was made for a CloudSpace, and says so by its name too.
func tenantOf(namespace client.Object) []string {
	labels := namespace.GetLabels()
	host, err := names.ForCloudSpace(labels[v1alpha1.LabelTenant], labels[v1alpha1.LabelCloudSpace])
	if err != nil || host.HostNamespace() != namespace.GetName() || labels[v1alpha1.LabelOwnerUID] == "" {
		return nil
	}
	return []string{labels[v1alpha1.LabelTenant]}
}

func never(event.UpdateEvent) bool { return false }

// asksAnew lets through a CloudSpace that asks for something else, or nothing any more.
func asksAnew(e event.UpdateEvent) bool {
	return e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration() || e.ObjectNew.GetUID() != e.ObjectOld.GetUID()
}

// holdsAnew lets through the quota of a host namespace that lets it use something else, or follows another spec. What is used does not
// count.
func holdsAnew(e event.UpdateEvent) bool {
	before, isQuota := e.ObjectOld.(*corev1.ResourceQuota)
	after, alsoQuota := e.ObjectNew.(*corev1.ResourceQuota)
	return !isQuota || !alsoQuota || !equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!equality.Semantic.DeepEqual(before.Status.Hard, after.Status.Hard) ||
		before.Annotations[v1alpha1.AnnotationGeneration] != after.Annotations[v1alpha1.AnnotationGeneration]
}

func byNamespace(_ context.Context, object client.Object) []reconcile.Request {
	id, ok := names.TenantID(object.GetNamespace())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: id}}}
}

// byLabels finds the TenantQuota of what was made for a CloudSpace. It only decides what is looked at.
func byLabels(_ context.Context, object client.Object) []reconcile.Request {
	id, name := object.GetLabels()[v1alpha1.LabelTenant], object.GetLabels()[v1alpha1.LabelCloudSpace]
	if id == "" || name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: id}}}
}
