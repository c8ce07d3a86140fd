// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"errors"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
)

// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=cloudspaces,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=cloudspaces/status,verbs=patch
// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=tenants,verbs=get;list;watch
// +kubebuilder:rbac:groups=tenancy.kubeopera.io,resources=tenantquotas,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=resourcequotas;limitranges,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,resourceNames=kubernetes,namespace=default,verbs=get
// +kubebuilder:rbac:groups="",resources=services,resourceNames=kubernetes,namespace=default,verbs=get
// +kubebuilder:rbac:groups="",resources=services,resourceNames=cloudspace-resolver,namespace=kubeopera-core,verbs=get
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=tlsroutes,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=services;serviceaccounts,verbs=list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;clusterroles;clusterrolebindings,verbs=list;watch
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=rolebindings,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=tenant-controller-host-namespace,verbs=bind
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,namespace=kubeopera-system,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=helmrepositories;helmcharts,namespace=kubeopera-system,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups="",resources=secrets,namespace=kubeopera-system,verbs=get;list;watch;create;update;delete

// SetupWithManager adds the reconciler to a manager: what wakes it, and how many CloudSpaces are worked on at a time.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, concurrency int) error {
	if err := errors.Join(mgr.Add(r.Kubeconfigs), mgr.Add(r.PullSecrets)); err != nil {
		return err
	}
	if err := mgr.GetFieldIndexer().IndexField(ctx, &helmv2.HelmRelease{}, rollingIndex, indexRolling); err != nil {
		return err
	}
	asked := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, apply.FinalizerLost(v1alpha1.FinalizerCloudSpace))
	owner := handler.EnqueueRequestsFromMapFunc(byLabels)
	all := handler.EnqueueRequestsFromMapFunc(r.all)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.CloudSpace{}, hostnameIndex, indexHostname); err != nil {
		return err
	}
	controlledBy := ctrl.NewControllerManagedBy(mgr)
	for _, object := range MetadataOnly() {
		controlledBy.Watches(object, owner, builder.OnlyMetadata)
	}
	for _, object := range EndpointKinds(r.Platform.Endpoint) {
		controlledBy.Watches(object, owner)
	}
	return controlledBy.
		Named("cloudspace").
		For(&v1alpha1.CloudSpace{}, builder.WithPredicates(asked)).
		Watches(&v1alpha1.CloudSpace{}, handler.EnqueueRequestsFromMapFunc(r.rivals), builder.WithPredicates(comesOrGoes)).
		Watches(&v1alpha1.Tenant{}, handler.EnqueueRequestsFromMapFunc(r.ofTenant), builder.WithPredicates(predicate.Funcs{UpdateFunc: tenantChanged})).
		Watches(&v1alpha1.TenantQuota{}, r.ledgerTurned()).
		Watches(&corev1.Namespace{}, handler.EnqueueRequestsFromMapFunc(r.ofNamespace)).
		Watches(&corev1.ResourceQuota{}, owner).
		Watches(&corev1.LimitRange{}, owner).
		Watches(&networkingv1.NetworkPolicy{}, owner).
		Watches(&policyv1.PodDisruptionBudget{}, owner).
		Watches(&rbacv1.RoleBinding{}, owner).
		Watches(&corev1.Secret{}, owner).
		Watches(&appsv1.Deployment{}, owner).
		Watches(&appsv1.StatefulSet{}, owner).
		Watches(&helmv2.HelmRelease{}, owner).
		Watches(&helmv2.HelmRelease{}, handler.EnqueueRequestsFromMapFunc(r.whoseTurn), builder.WithPredicates(turned{})).
		Watches(&sourcev1.HelmChart{}, all, builder.WithPredicates(chartTurned{})).
		Watches(&sourcev1.HelmRepository{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(r.Kubeconfigs.Changes, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(r.PullSecrets.copies.Changes, &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(r.PullSecrets.sources.Changes, all)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](
				r.Platform.Backoff.Base.Duration, r.Platform.Backoff.Max.Duration),
		}).
		Complete(reconcile.Func(r.reconcileNamed))
}

// tenantChanged lets through a Tenant whose spec changed. One that is being deleted takes its CloudSpaces down itself: they
// need not first say that they wait for it.
func tenantChanged(e event.UpdateEvent) bool {
	return e.ObjectNew.GetDeletionTimestamp().IsZero() && e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
}

// byLabels finds the CloudSpace that an object was made for. It only decides what is looked at: whether the object is really
// ours is told by the owner's UID.
func byLabels(_ context.Context, object client.Object) []reconcile.Request {
	tenant, name := object.GetLabels()[v1alpha1.LabelTenant], object.GetLabels()[v1alpha1.LabelCloudSpace]
	if tenant == "" || name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: names.TenantNamespace(tenant), Name: name}}}
}

// ofNamespace finds the CloudSpace of a host namespace, or all of a tenant namespace.
func (r *Reconciler) ofNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	if _, ok := names.TenantID(object.GetName()); ok {
		return r.list(ctx, client.InNamespace(object.GetName()))
	}
	return byLabels(ctx, object)
}

func (r *Reconciler) ofTenant(ctx context.Context, object client.Object) []reconcile.Request {
	return r.list(ctx, client.InNamespace(names.TenantNamespace(object.GetName())))
}

// whoseTurn finds the CloudSpaces to be changed next, when another one's turn began or ended.
func (r *Reconciler) whoseTurn(context.Context, client.Object) (requests []reconcile.Request) {
	for _, next := range r.Rollout.Next() {
		requests = append(requests, reconcile.Request{NamespacedName: next})
	}
	return requests
}

func (r *Reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.list(ctx)
}

func (r *Reconciler) list(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &v1alpha1.CloudSpaceList{}
	if err := r.Client.List(ctx, list, options...); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return requests
}
