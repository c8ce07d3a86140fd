// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/controllers/cloudspace"
	"github.com/tantilium/cloud-runner/controllers/tenant"
	"github.com/tantilium/cloud-runner/controllers/tenantquota"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
)

// Scheme knows every kind that the controllers read or write.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(helmv2.AddToScheme(scheme))
	utilruntime.Must(sourcev1.AddToScheme(scheme))
	utilruntime.Must(gatewayv1.Install(scheme))
	return scheme
}

// CacheOptions bound what is held in memory, and what the operator needs rights to list: Secrets and releases of the system
// namespace alone, and elsewhere only what carries our labels. An object of somebody else under a name of ours is then not
// seen, and found when creating ours fails.
func CacheOptions(platform *configv1alpha1.PlatformConfig) cache.Options {
	ours := labels.NewSelector().Add(exists(v1alpha1.LabelOwnerUID))
	tenants := labels.NewSelector().Add(exists(v1alpha1.LabelTenant))
	system := map[string]cache.Config{names.SystemNamespace: {}}
	options := cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Namespace{}:             {Label: tenants},
			&corev1.ResourceQuota{}:         {Label: ours},
			&corev1.LimitRange{}:            {Label: ours},
			&appsv1.Deployment{}:            {Label: ours},
			&appsv1.StatefulSet{}:           {Label: ours},
			&rbacv1.RoleBinding{}:           {Label: ours},
			&rbacv1.Role{}:                  {Label: ours},
			&rbacv1.ClusterRole{}:           {Label: ours},
			&rbacv1.ClusterRoleBinding{}:    {Label: ours},
			&corev1.Service{}:               {Label: notCopied(ours)},
			&corev1.ServiceAccount{}:        {Label: ours},
			&policyv1.PodDisruptionBudget{}: {Label: ours},
			&networkingv1.Ingress{}:         {Label: ours},
			&networkingv1.NetworkPolicy{}:   {Label: ours},
			&corev1.Secret{}:                {Label: ours, Namespaces: system},
			&helmv2.HelmRelease{}:           {Namespaces: system},
			&sourcev1.HelmChart{}:           {Namespaces: system},
			&sourcev1.HelmRepository{}:      {Namespaces: system},
		},
	}
	if hostname := platform.Endpoint.Hostname; hostname != nil && hostname.TLSRoute != nil {
		// A kind that the API server may not have otherwise.
		options.ByObject[&gatewayv1.TLSRoute{}] = cache.ByObject{Label: ours}
	}
	return options
}

// notCopied leaves out what vCluster has copied for a tenant: it carries the tenant's labels, which could be any.
func notCopied(ours labels.Selector) labels.Selector {
	copied, err := labels.NewRequirement("vcluster.loft.sh/managed-by", selection.DoesNotExist, nil)
	utilruntime.Must(err)
	return ours.Add(*copied)
}

// Options of the controllers.
type Options struct {
	Platform *configv1alpha1.PlatformConfig
	// Concurrency is how many Tenants, and how many CloudSpaces, are worked on at a time.
	Concurrency int
	// Flux looks at Flux inside CloudSpaces.
	Flux  cloudspace.FluxProber
	Clock clock.PassiveClock
	// Metrics is where phases and expiries are told.
	Metrics prometheus.Registerer
}

// Add adds all controllers and their metrics to a manager.
func Add(ctx context.Context, mgr ctrl.Manager, o Options) error {
	direct, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	applier := apply.Applier{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Memory: apply.NewMemory()}
	recorder := tenantsRecorder{quietRecorder{EventRecorder: mgr.GetEventRecorder("tenant-controller"), namespaces: mgr.GetClient()}}
	tenants := &tenant.Reconciler{Applier: applier, Platform: o.Platform, Recorder: recorder, Clock: o.Clock}
	tenantQuotas := &tenantquota.Reconciler{Applier: applier, Platform: o.Platform, Clock: o.Clock}
	cloudSpaces := &cloudspace.Reconciler{
		Applier: applier, Platform: o.Platform, Recorder: recorder, Clock: o.Clock,
		Flux: o.Flux, Kubeconfigs: cloudspace.NewKubeconfigWatch(direct), PullSecrets: cloudspace.NewPullSecretWatch(direct),
		Host:    &cloudspace.DiscoveredHost{Client: direct.Discovery(), Clock: o.Clock},
		Rollout: &cloudspace.Rollout{Reader: mgr.GetClient(), Limits: o.Platform.Rollout, Patience: o.Platform.Deadlines.ControlPlane.Duration, Clock: o.Clock},
	}
	return errors.Join(
		tenants.SetupWithManager(mgr, o.Concurrency),
		cloudSpaces.SetupWithManager(ctx, mgr, o.Concurrency),
		tenantQuotas.SetupWithManager(ctx, mgr, o.Concurrency),
		o.Metrics.Register(tenant.Collector{Reader: mgr.GetClient()}),
		o.Metrics.Register(cloudspace.Collector{Reader: mgr.GetClient()}),
		o.Metrics.Register(tenantquota.Collector{Reader: mgr.GetClient()}),
		o.Metrics.Register(OrphanCollector{Reader: mgr.GetClient()}),
	)
}

// CachesSynced is a readiness check: it passes when every cache holds what the API server has. It also fills the caches of an
// instance that is not the leader, all at once, so that it can take over at any time.
func CachesSynced(mgr ctrl.Manager, platform *configv1alpha1.PlatformConfig) func(*http.Request) error {
	return func(request *http.Request) error {
		var errs []error
		kinds := append(cloudspace.MetadataOnly(), cloudspace.EndpointKinds(platform.Endpoint)...)
		for _, object := range append(kinds,
			&v1alpha1.Tenant{}, &v1alpha1.CloudSpace{}, &v1alpha1.TenantQuota{}, &corev1.Namespace{}, &corev1.ResourceQuota{}, &corev1.LimitRange{}, &networkingv1.NetworkPolicy{},
			&policyv1.PodDisruptionBudget{}, &rbacv1.RoleBinding{}, &corev1.Secret{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &helmv2.HelmRelease{},
			&sourcev1.HelmChart{}, &sourcev1.HelmRepository{},
		) {
			errs = append(errs, synced(request.Context(), mgr.GetCache(), object))
		}
		return errors.Join(errs...)
	}
}

func synced(ctx context.Context, c cache.Cache, object client.Object) error {
	informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	if !informer.HasSynced() {
		return fmt.Errorf("the cache of %T is not synced yet", object)
	}
	return nil
}

func exists(label string) labels.Requirement {
	requirement, err := labels.NewRequirement(label, selection.Exists, nil)
	utilruntime.Must(err)
	return *requirement
}
