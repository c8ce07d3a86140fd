// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

const (
	// annotationRevision stands on all objects of the control plane's chart and tells which values they were made of: what the
	// cache shows of them is then known to be of the wanted ones.
	annotationRevision = "tenancy.kubeopera.io/revision"
	// annotationAsked stands on the HelmRelease of a control plane and is what its spec asked for when it was last granted in
	// full. A change of something else is the platform's.
	annotationAsked = "tenancy.kubeopera.io/asked"
)

// changedControlPlane is what the release of the control plane should be in this pass: all that can be, or, while it is not its
// turn, what it is already.
func (r *Reconciler) changedControlPlane(ctx context.Context, s *scope, to target) (*helmv2.HelmRelease, error) {
	cached, cause := s.observed.controlPlane, s.cause()
	s.short = to.short
	if s.short != nil && cause == rolledByPlatform {
		s.short = step.Advisory(s.short)
	}
	if to.hold {
		return withMembers(r.heldControlPlane(s), s.names, true)
	}
	desired, err := desiredControlPlane(s, r.Platform, desiredValues(s.names, s.object.Spec, to.version, to.size, r.Platform))
	if err != nil {
		return nil, err
	}
	if to.short == nil {
		metav1.SetMetaDataAnnotation(&desired.ObjectMeta, annotationAsked, s.asks())
	}
	if cached == nil || !s.established() || suspended(cached, s.names) || !changes(cached, desired) {
		r.Rollout.Leave(s.object.UID)
		return desired, nil
	}
	if turnOf(cached).cause != "" {
		return desired, nil
	}
	given, err := r.Rollout.Begin(ctx, s.object, s.account(cause))
	if err != nil {
		return r.waitForTurn(s, cause, err)
	}
	metav1.SetMetaDataAnnotation(&desired.ObjectMeta, annotationRolling, given.String())
	return desired, nil
}

// waitForTurn leaves the control plane as it is. A change of the platform, which this CloudSpace did not ask for, does not make
// it unready.
func (r *Reconciler) waitForTurn(s *scope, cause string, err error) (*helmv2.HelmRelease, error) {
	if step.Class(err) != "Wait" {
		return nil, err
	}
	if s.short == nil {
		s.short = err
	}
	if cause == rolledByPlatform {
		s.short = step.Advisory(err)
	}
	return r.heldControlPlane(s), nil
}

// heldControlPlane is the release as it should be if nothing about the control plane changed.
func (r *Reconciler) heldControlPlane(s *scope) *helmv2.HelmRelease {
	cached := s.observed.controlPlane
	held := desiredControlPlaneRelease(s, r.Platform)
	held.Spec.ChartRef = cached.Spec.ChartRef
	held.Spec.Values = cached.Spec.Values
	held.Spec.PostRenderers = cached.Spec.PostRenderers
	held.Spec.CommonMetadata = cached.Spec.CommonMetadata
	return held
}

// endTurn ends the turn of a control plane that was changed and runs. What runs inside is the tenant's, and could be kept from it.
func (r *Reconciler) endTurn(ctx context.Context, s *scope) error {
	release := s.observed.controlPlane
	if turnOf(release).cause == "" {
		return nil
	}
	if err := r.Annotate(ctx, release, annotationRolling, ""); err != nil {
		return err
	}
	r.Rollout.End(s.object.UID)
	return nil
}

// ensureUpToDate tells why the control plane is not all that is asked for.
func (r *Reconciler) ensureUpToDate(_ context.Context, s *scope) error {
	if s.short == nil && turnOf(s.observed.controlPlane).cause != "" {
		return step.Wait(v1alpha1.ReasonInstalling, "the members of the control plane are changed one after the other")
	}
	return s.short
}

// account is what a change counts for among others: one of the platform to a control plane that does not run counts for nobody.
func (s *scope) account(cause string) string {
	if cause == rolledByPlatform && !meta.IsStatusConditionTrue(s.object.Status.Conditions, v1alpha1.ConditionControlPlaneReady) {
		return rolledToMend
	}
	return cause
}

// cause tells whose change it is when the control plane is not what it should be.
func (s *scope) cause() string {
	if cached := s.observed.controlPlane; cached != nil && cached.Annotations[annotationAsked] == s.asks() {
		return rolledByPlatform
	}
	return rolledBySpec
}

// asks is what the spec says of what can be changed in a control plane that runs.
func (s *scope) asks() string {
	return s.object.Spec.KubernetesVersion + "/" + string(s.object.Spec.ControlPlane.Size)
}

// changes tells whether a release would make the control plane another than it was last made. What was altered by hand is
// put right without a turn.
func changes(cached, desired *helmv2.HelmRelease) bool {
	wanted := Revision(desired)
	return writtenRevision(cached) != wanted && Revision(cached) != wanted
}

// writtenRevision is the revision that a release was last written with; empty before there was one.
func writtenRevision(release *helmv2.HelmRelease) string {
	if release == nil || release.Spec.CommonMetadata == nil {
		return ""
	}
	return release.Spec.CommonMetadata.Annotations[annotationRevision]
}

// Revision names what a release makes of the control plane: chart, values and patches, in any order of their keys.
func Revision(release *helmv2.HelmRelease) string {
	var values any
	if release.Spec.Values != nil {
		// What is no JSON is no revision of ours.
		_ = json.Unmarshal(release.Spec.Values.Raw, &values)
	}
	text, _ := json.Marshal([]any{release.Spec.ChartRef, values, release.Spec.PostRenderers})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// releaseVersions reads the versions out of the values that a release was made with.
func releaseVersions(release *helmv2.HelmRelease) (versions v1alpha1.CloudSpaceVersions) {
	if release == nil || release.Spec.Values == nil {
		return versions
	}
	var values Values
	if err := json.Unmarshal(release.Spec.Values.Raw, &values); err != nil {
		return versions
	}
	versions.Kubernetes = values.ControlPlane.Distro.K8s.Image.Tag
	versions.VCluster = values.ControlPlane.StatefulSet.Image.Tag
	return versions
}
