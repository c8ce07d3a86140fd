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
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
)

// observed is what stands on the host cluster, as the caches have it. Nil means that there is none, or none of ours.
type observed struct {
	tenant          *v1alpha1.Tenant
	tenantNamespace *corev1.Namespace
	// tenantQuota has the ledger of the tenant.
	tenantQuota  *v1alpha1.TenantQuota
	namespace    *corev1.Namespace
	access       *rbacv1.RoleBinding
	limits       *corev1.LimitRange
	quotas       quotas
	policies     map[string]*networkingv1.NetworkPolicy
	charts       map[string]chartSource
	controlPlane *helmv2.HelmRelease
	apiServer    *appsv1.Deployment
	etcd         *appsv1.StatefulSet
	flux         *helmv2.HelmRelease
	advisor      *helmv2.HelmRelease
	kubeconfig   *corev1.Secret
	// pullSecrets are the copies in the host namespace, by name; nil when none are looked for.
	pullSecrets map[string]*corev1.Secret
	// parts is what the chart of the control plane made.
	parts parts
	// etcdBudget is only for control planes with high availability.
	etcdBudget *policyv1.PodDisruptionBudget
	// service, internalKubeconfig, ingress, tlsRoute and hostnameTaken are only for endpoints outside the host cluster.
	service            *corev1.Service
	internalKubeconfig *corev1.Secret
	ingress            *networkingv1.Ingress
	tlsRoute           *gatewayv1.TLSRoute
	hostnameTaken      bool
	// running are the versions that this pass found installed.
	running v1alpha1.CloudSpaceVersions
	// credentials is the kubeconfig as it was rebuilt in this pass.
	credentials *credentials
}

// chartSource is where the chart of a release comes from; all CloudSpaces share it.
type chartSource struct {
	repository *sourcev1.HelmRepository
	chart      *sourcev1.HelmChart
}

// observe reads everything a pass needs from the caches; no call reaches the API server.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	o := &s.observed
	if s.tenantID == "" {
		return nil
	}
	host, system := s.names.HostNamespace(), names.SystemNamespace
	return errors.Join(
		apply.Read(ctx, r.Client, &o.tenant, "", s.tenantID),
		apply.Read(ctx, r.Client, &o.tenantNamespace, "", s.object.Namespace),
		apply.Read(ctx, r.Client, &o.tenantQuota, "", s.tenantID),
		apply.Read(ctx, r.Client, &o.namespace, "", host),
		apply.Read(ctx, r.Client, &o.access, host, accessName),
		apply.Read(ctx, r.Client, &o.limits, host, limitsName),
		apply.Read(ctx, r.Client, &o.quotas.total, host, quotaName),
		apply.Read(ctx, r.Client, &o.quotas.controlPlane, host, controlPlaneQuotaName),
		apply.Read(ctx, r.Client, &o.quotas.workloads, host, workloadQuotaName),
		apply.Read(ctx, r.Client, &o.controlPlane, system, s.names.ControlPlaneRelease()),
		apply.Read(ctx, r.Client, &o.apiServer, host, s.names.HostName()),
		apply.Read(ctx, r.Client, &o.etcd, host, s.names.EtcdStatefulSet()),
		apply.Read(ctx, r.Client, &o.flux, system, s.names.FluxRelease()),
		apply.Read(ctx, r.Client, &o.advisor, system, s.names.AdvisorRelease()),
		apply.Read(ctx, r.Client, &o.kubeconfig, system, s.names.KubeconfigSecret()),
		r.observeNetworkPolicies(ctx, s),
		r.observeCharts(ctx, o),
		r.observeEndpoint(ctx, s),
		r.observeHighAvailability(ctx, s),
	)
}

func (r *Reconciler) observeCharts(ctx context.Context, o *observed) error {
	o.charts = map[string]chartSource{}
	for role, chart := range r.charts() {
		var source chartSource
		if err := errors.Join(
			apply.Read(ctx, r.Client, &source.repository, names.SystemNamespace, role),
			apply.Read(ctx, r.Client, &source.chart, names.SystemNamespace, chartObjectName(role, chart)),
		); err != nil {
			return err
		}
		o.charts[role] = source
	}
	return nil
}

// charts are the configured charts by their role.
func (r *Reconciler) charts() map[string]*configv1alpha1.Chart {
	charts := map[string]*configv1alpha1.Chart{
		roleControlPlane: &r.Platform.Charts.VCluster,
		roleFlux:         &r.Platform.Charts.Flux,
	}
	if r.Platform.Charts.Advisor != nil {
		charts[roleAdvisor] = r.Platform.Charts.Advisor
	}
	return charts
}
