// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/step"
)

// steps is the whole way up, in order.
func (r *Reconciler) steps() []step.Step[*scope] {
	deadlines := r.Platform.Deadlines
	return []step.Step[*scope]{
		{Proves: v1alpha1.ConditionQuotaReserved, Do: r.reserveQuota},
		{Proves: v1alpha1.ConditionNamespaceReady, Do: r.ensureNamespace, Deadline: deadlines.Namespace.Duration},
		{Proves: v1alpha1.ConditionPoliciesApplied, Do: r.ensurePolicies, Deadline: deadlines.Namespace.Duration},
		{Proves: v1alpha1.ConditionControlPlaneReady, Do: r.ensureControlPlane, Deadline: deadlines.ControlPlane.Duration},
		{Proves: v1alpha1.ConditionKubeconfigReady, Do: r.ensureKubeconfig, Deadline: deadlines.Kubeconfig.Duration},
		{Proves: v1alpha1.ConditionFluxReady, Do: r.ensureFlux, Deadline: deadlines.Flux.Duration},
		{Proves: v1alpha1.ConditionUpToDate, Do: r.ensureUpToDate, Pending: true},
		{Proves: v1alpha1.ConditionAdvisorReady, Do: r.ensureAdvisor, Deadline: deadlines.Flux.Duration, Optional: true, Skip: r.Platform.Charts.Advisor == nil},
	}
}

func (r *Reconciler) ensureNamespace(ctx context.Context, s *scope) (err error) {
	o := &s.observed
	if o.namespace == nil {
		// What is too small is refused before anything is made for it.
		if _, err := r.planQuotas(s); err != nil {
			return err
		}
	}
	if o.namespace, err = apply.Ensure(ctx, r.Applier, s.owner, o.namespace, desiredNamespace(s, r.Platform)); err != nil {
		return err
	}
	o.access, err = apply.Ensure(ctx, r.Applier, s.owner, o.access, desiredAccess(s))
	return err
}

// ensurePolicies does not go on before Kubernetes enforces the quotas: what is created earlier is not counted.
func (r *Reconciler) ensurePolicies(ctx context.Context, s *scope) (err error) {
	if err := seesTheLatest(ctx, s); err != nil {
		return err
	}
	p, err := r.planQuotas(s)
	if err != nil {
		return err
	}
	o := &s.observed
	if o.limits, err = apply.Ensure(ctx, r.Applier, s.owner, o.limits, desiredLimits(s, p)); err != nil {
		return err
	}
	if err := r.ensureNetworkPolicies(ctx, s); err != nil {
		return err
	}
	if err := r.ensureDisruptionBudget(ctx, s); err != nil {
		return err
	}
	return r.ensureQuotas(ctx, s, p)
}

func (r *Reconciler) ensureControlPlane(ctx context.Context, s *scope) (err error) {
	if s.object.Spec.Suspend {
		return r.suspendControlPlane(ctx, s)
	}
	lacks, err := r.ensurePullSecrets(ctx, s)
	if err != nil {
		return err
	}
	to, err := r.target(ctx, s)
	if err != nil {
		return err
	}
	if to = to.without(lacks); !to.hold {
		to = to.without(r.lacksRoom(s, to.size))
	}
	if err := r.ensureChart(ctx, s, roleControlPlane); err != nil {
		return err
	}
	desired, err := r.changedControlPlane(ctx, s, to)
	if err != nil {
		return err
	}
	o := &s.observed
	if o.controlPlane, err = r.ensureRelease(ctx, s, roleControlPlane, o.controlPlane, desired); err != nil {
		return err
	}
	if err := r.mendDrift(ctx, s); err != nil {
		return err
	}
	if err := r.controlPlaneRuns(ctx, s); err != nil {
		return err
	}
	if o.notRunning() != "" {
		// Some members serve, others are lost, or still to be changed.
		return nil
	}
	o.running = releaseVersions(o.controlPlane)
	if err := r.removePullSecrets(ctx, s); err != nil {
		return err
	}
	return r.endTurn(ctx, s)
}

// offered finds the version and size that the CloudSpace asks for among those of the platform.
func (r *Reconciler) offered(spec v1alpha1.CloudSpaceSpec) (version configv1alpha1.KubernetesVersion, size configv1alpha1.Size, err error) {
	version, ok := r.version(spec.KubernetesVersion)
	if !ok {
		return version, size, step.Terminal(v1alpha1.ReasonUnsupportedVersion, fmt.Sprintf("Kubernetes %s is not offered; offered are %s",
			spec.KubernetesVersion, r.offeredVersions()))
	}
	size, ok = r.Platform.Sizes[string(spec.ControlPlane.Size)]
	if !ok {
		return version, size, step.Terminal(v1alpha1.ReasonUnsupportedSize, fmt.Sprintf("control-plane size %s is not offered", spec.ControlPlane.Size))
	}
	return version, size, fits(spec.Resources, spec.ControlPlane, size, r.Platform.LimitFactors)
}

// ensureKubeconfig copies the vCluster's kubeconfig. It is made anew from its parts, because everybody who can write in
// the host namespace could have written it.
func (r *Reconciler) ensureKubeconfig(ctx context.Context, s *scope) (err error) {
	source, err := r.Kubeconfigs.Follow(s.key(), s.names, s.owner, !s.settled()) //nolint:contextcheck // what it begins to watch is watched beyond this pass.
	switch {
	case err != nil:
		return err
	case source == nil:
		return step.Wait(v1alpha1.ReasonWaitingForKubeconfig, "waiting for the control plane to write its kubeconfig")
	}
	server, err := r.ensureEndpoint(ctx, s)
	if err != nil {
		return err
	}
	o := &s.observed
	if o.credentials, err = rebuildKubeconfig(source.Data[kubeconfigSourceKey], s.names, server); err != nil {
		return step.Terminal(v1alpha1.ReasonKubeconfigInvalid, fmt.Sprintf("the control plane's kubeconfig is not used: %v", err))
	}
	if s.outside() {
		if o.internalKubeconfig, err = apply.Ensure(ctx, r.Applier, s.owner, o.internalKubeconfig, desiredInternalKubeconfig(s)); err != nil {
			return err
		}
	}
	o.kubeconfig, err = apply.Ensure(ctx, r.Applier, s.owner, o.kubeconfig, desiredKubeconfig(s))
	return err
}

// ensureFlux proves Flux by what runs inside, not by the release alone. Once proven, it is asked again only when the release
// or the kubeconfig changed.
func (r *Reconciler) ensureFlux(ctx context.Context, s *scope) (err error) {
	if err := r.ensureChart(ctx, s, roleFlux); err != nil {
		return err
	}
	desired, err := desiredInner(s, r.Platform, roleFlux, &r.Platform.Charts.Flux)
	if err != nil {
		return err
	}
	o := &s.observed
	if o.flux, err = r.ensureRelease(ctx, s, roleFlux, o.flux, desired); err != nil {
		return err
	}
	o.running.Flux = r.Platform.Charts.Flux.Version
	return r.proveFlux(ctx, s)
}

// proveFlux asks the CloudSpace, unless it was found to run Flux with just this release and kubeconfig.
func (r *Reconciler) proveFlux(ctx context.Context, s *scope) error {
	o := s.observed
	proof := fluxProof(o.flux, o.credentials)
	if r.fluxProven.holds(s.key(), proof) {
		return nil
	}
	missing, err := r.Flux.Missing(ctx, o.credentials.internal)
	if err != nil {
		return fmt.Errorf("asking the CloudSpace about Flux: %w", err)
	}
	if missing != "" {
		waiting := apimeta.FindStatusCondition(s.object.Status.Conditions, v1alpha1.ConditionFluxReady)
		return step.WaitFor(askAgain(waiting, s.now), v1alpha1.ReasonWaitingForFlux, "waiting for "+missing)
	}
	r.fluxProven.keep(s.key(), proof)
	return nil
}

func (r *Reconciler) ensureAdvisor(ctx context.Context, s *scope) error {
	chart := r.Platform.Charts.Advisor
	if err := r.ensureChart(ctx, s, roleAdvisor); err != nil {
		return err
	}
	desired, err := desiredInner(s, r.Platform, roleAdvisor, chart)
	if err != nil {
		return err
	}
	s.observed.advisor, err = r.ensureRelease(ctx, s, roleAdvisor, s.observed.advisor, desired)
	return err
}

// ensureChart makes the repository and the chart that all CloudSpaces share.
func (r *Reconciler) ensureChart(ctx context.Context, s *scope, role string) (err error) {
	source, chart := s.observed.charts[role], r.charts()[role]
	if source.repository, err = apply.Ensure(ctx, r.Applier, apply.Platform, source.repository, desiredRepository(role, chart, r.Platform)); err != nil {
		return err
	}
	desired := desiredChart(role, chart)
	if s.retryNow && chartBroken(source.chart) && !chartAsked(source.chart, s.now) {
		metav1.SetMetaDataAnnotation(&desired.ObjectMeta, meta.ReconcileRequestAnnotation, s.token)
	}
	source.chart, err = apply.Ensure(ctx, r.Applier, apply.Platform, source.chart, desired)
	s.observed.charts[role] = source
	return err
}

// ensureRelease makes a HelmRelease what it should be and waits until Flux has installed just that.
func (r *Reconciler) ensureRelease(ctx context.Context, s *scope, role string, cached, desired *helmv2.HelmRelease) (*helmv2.HelmRelease, error) {
	chart, version := s.observed.charts[role].chart, r.charts()[role].Version
	if role == roleControlPlane {
		version = releaseVersions(desired).VCluster
	}
	if chart != nil && desired.Spec.ChartRef.Name != chart.Name {
		// A release that is held has its own chart, and has fetched it.
		chart = nil
	}
	again := s.retryNow && cached != nil && judge(cached, chart, version).state == releaseFailing
	if again {
		tryAgain(desired, s.token)
	}
	release, err := apply.Ensure(ctx, r.Applier, s.owner, cached, desired)
	if err != nil {
		return release, err
	}
	if again {
		r.tellMended(s, role, cached)
	}
	return release, judge(release, chart, version).asError(role)
}

// version finds the offered Kubernetes version; an empty one means the default.
func (r *Reconciler) version(asked string) (configv1alpha1.KubernetesVersion, bool) {
	for _, offered := range r.Platform.Kubernetes {
		if asked == "" || offered.Version == asked {
			return offered, true
		}
	}
	return configv1alpha1.KubernetesVersion{}, false
}

func (r *Reconciler) offeredVersions() string {
	var versions []string
	for _, offered := range r.Platform.Kubernetes {
		versions = append(versions, offered.Version)
	}
	return strings.Join(versions, ", ")
}

func (s *scope) key() types.NamespacedName {
	return types.NamespacedName{Namespace: s.object.Namespace, Name: s.object.Name}
}
