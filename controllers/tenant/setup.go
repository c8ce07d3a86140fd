// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
)

// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=tenants,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=tenants/status,verbs=patch
// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=cloudspaces,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=tenantquotas,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=cloudspace-owner;cloudspace-editor;cloudspace-viewer,verbs=bind

// SetupWithManager adds the reconciler to a manager: what wakes it, and how many Tenants are worked on at a time.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, concurrency int) error {
	asked := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, apply.FinalizerLost(v1alpha1.FinalizerTenant))
	owner := handler.EnqueueRequestsFromMapFunc(byLabel)
	return ctrl.NewControllerManagedBy(mgr).
		Named("tenant").
		For(&v1alpha1.Tenant{}, builder.WithPredicates(asked)).
		Watches(&v1alpha1.CloudSpace{}, handler.EnqueueRequestsFromMapFunc(byNamespace)).
		Watches(&v1alpha1.TenantQuota{}, handler.EnqueueRequestsFromMapFunc(byName), builder.WithPredicates(
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{},
				predicate.Funcs{UpdateFunc: sumsChanged}))).
		Watches(&corev1.ResourceQuota{}, handler.EnqueueRequestsFromMapFunc(byNamespace), builder.WithPredicates(predicate.Funcs{UpdateFunc: specChanged})).
		Watches(&corev1.Namespace{}, owner).
		Watches(&rbacv1.RoleBinding{}, owner).
		Watches(&corev1.Secret{}, owner).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				r.Platform.Backoff.Base.Duration, r.Platform.Backoff.Max.Duration),
		}).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// specChanged leaves out what is used of a quota, but for the first count of it.
func specChanged(e event.UpdateEvent) bool {
	before, isQuota := e.ObjectOld.(*corev1.ResourceQuota)
	after, alsoQuota := e.ObjectNew.(*corev1.ResourceQuota)
	return !isQuota || !alsoQuota || !equality.Semantic.DeepEqual(before.Spec, after.Spec) || !maps.Equal(before.Labels, after.Labels) || counted(before) != counted(after)
}

// sumsChanged leaves out what a ledger says of single CloudSpaces: they tell that themselves.
func sumsChanged(e event.UpdateEvent) bool {
	before, isQuota := e.ObjectOld.(*v1alpha1.TenantQuota)
	after, alsoQuota := e.ObjectNew.(*v1alpha1.TenantQuota)
	return !isQuota || !alsoQuota || !equality.Semantic.DeepEqual(sums(before), sums(after))
}

func byName(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetName()}}}
}

// byLabel finds the Tenant that an object was made for. It only decides what is looked at.
func byLabel(_ context.Context, object client.Object) []reconcile.Request {
	id := object.GetLabels()[v1alpha1.LabelTenant]
	if id == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: id}}}
}

func byNamespace(_ context.Context, object client.Object) []reconcile.Request {
	id, ok := names.TenantID(object.GetNamespace())
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: id}}}
}
