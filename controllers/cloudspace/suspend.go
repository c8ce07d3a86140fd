// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

// podsPause is how long pods that were asked to end are given before they are asked again.
const podsPause = 10 * time.Second

// suspendControlPlane takes a CloudSpace to rest: Flux on the host lets go of what it installed inside, so that it does not fail there; then
// the control plane goes, so that nothing makes pods any more; then the workloads. Volumes, Services and Secrets stay.
func (r *Reconciler) suspendControlPlane(ctx context.Context, s *scope) error {
	o := &s.observed
	if o.controlPlane == nil {
		return step.Rest(v1alpha1.ReasonCloudSpaceSuspended, "suspended before a control plane was made")
	}
	if err := r.suspendInner(ctx, s); err != nil {
		return err
	}
	if err := r.endTurn(ctx, s); err != nil {
		return err
	}
	r.Rollout.Leave(s.object.UID)
	desired, err := withMembers(r.heldControlPlane(s), s.names, false)
	if err != nil {
		return err
	}
	if o.controlPlane, err = r.ensureRelease(ctx, s, roleControlPlane, o.controlPlane, desired); err != nil {
		return suspending(err)
	}
	if err := r.mendDrift(ctx, s); err != nil {
		return err
	}
	if left := o.notEnded(); left != "" {
		return step.Wait(v1alpha1.ReasonCloudSpaceSuspended, "being suspended: waiting for "+left+" to end")
	}
	return r.endWorkloads(ctx, s)
}

// suspending says of what is on its way that it leads to rest.
func suspending(err error) error {
	if step.Class(err) != "Wait" || step.Failed(err) {
		return err
	}
	return step.Wait(v1alpha1.ReasonCloudSpaceSuspended, "being suspended: waiting for Flux to take the control plane down")
}

// suspendInner has Flux on the host leave alone what it installed inside. It goes on when the release is made what it should be.
func (r *Reconciler) suspendInner(ctx context.Context, s *scope) (err error) {
	o := &s.observed
	for _, release := range []**helmv2.HelmRelease{&o.flux, &o.advisor} {
		if *release == nil || !s.owner.Owns(*release) || !(*release).DeletionTimestamp.IsZero() {
			continue
		}
		suspended := helmRelease((*release).Name)
		(*release).Spec.DeepCopyInto(&suspended.Spec)
		suspended.Spec.Suspend = true
		if *release, err = apply.Ensure(ctx, r.Applier, s.owner, *release, suspended); err != nil {
			return err
		}
	}
	return nil
}

// withoutMembers scales the control plane to zero from outside the chart: its pods stay what they are, and so does what etcd knows of its members.
func withoutMembers(n names.CloudSpace) []kustomize.Patch {
	zero := func(kind, name string) kustomize.Patch {
		return kustomize.Patch{
			Target: &kustomize.Selector{Group: "apps", Version: "v1", Kind: kind, Name: name},
			Patch:  `[{"op": "add", "path": "/spec/replicas", "value": 0}]`,
		}
	}
	return []kustomize.Patch{zero("Deployment", n.HostName()), zero("StatefulSet", n.EtcdStatefulSet())}
}

// suspended tells whether a release makes a control plane without members.
func suspended(release *helmv2.HelmRelease, n names.CloudSpace) bool {
	return release != nil && len(release.Spec.PostRenderers) == 1 && release.Spec.PostRenderers[0].Kustomize != nil &&
		slices.ContainsFunc(release.Spec.PostRenderers[0].Kustomize.Patches, func(p kustomize.Patch) bool {
			return equality.Semantic.DeepEqual(p, withoutMembers(n)[0])
		})
}

// withMembers is a release with its members, or without.
func withMembers(release *helmv2.HelmRelease, n names.CloudSpace, members bool) (*helmv2.HelmRelease, error) {
	if suspended(release, n) != members {
		return release, nil
	}
	if len(release.Spec.PostRenderers) != 1 || release.Spec.PostRenderers[0].Kustomize == nil || release.Spec.CommonMetadata == nil {
		return nil, fmt.Errorf("release %s is not as the operator makes it", release.Name)
	}
	changed := release.DeepCopy()
	patches := &changed.Spec.PostRenderers[0].Kustomize.Patches
	*patches = slices.DeleteFunc(*patches, func(p kustomize.Patch) bool {
		return slices.ContainsFunc(withoutMembers(n), func(zero kustomize.Patch) bool { return equality.Semantic.DeepEqual(p, zero) })
	})
	if !members {
		*patches = append(*patches, withoutMembers(n)...)
	}
	changed.Spec.CommonMetadata.Annotations = map[string]string{annotationRevision: Revision(changed)}
	return changed, nil
}

// notEnded names what of a suspended control plane still runs; empty when nothing does. Pods that are ending are still counted.
func (o observed) notEnded() string {
	wanted := writtenRevision(o.controlPlane)
	used := o.quotas.controlPlane.Status.Used[corev1.ResourcePods]
	switch d, s := o.apiServer, o.etcd; {
	case d != nil && (d.Annotations[annotationRevision] != wanted || replicas(d.Spec.Replicas) > 0 || d.Status.ObservedGeneration != d.Generation || d.Status.Replicas > 0):
		return "the API server of the control plane"
	case s != nil && (s.Annotations[annotationRevision] != wanted || replicas(s.Spec.Replicas) > 0 || s.Status.ObservedGeneration != s.Generation || s.Status.Replicas > 0):
		return "etcd of the control plane"
	case used.Sign() > 0:
		return "the pods of the control plane"
	default:
		return ""
	}
}

// endWorkloads ends all pods that are left: nobody is there any more who would make them anew. Whether there are any, the quota knows.
func (r *Reconciler) endWorkloads(ctx context.Context, s *scope) error {
	used := s.observed.quotas.workloads.Status.Used[corev1.ResourcePods]
	if used.Sign() == 0 {
		return step.Rest(v1alpha1.ReasonCloudSpaceSuspended, "suspended: neither control plane nor workloads run")
	}
	if r.ended.due(s.key(), s.now) {
		if err := s.owner.Confirm(ctx); err != nil {
			return err
		}
		if err := r.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(s.names.HostNamespace())); err != nil {
			return fmt.Errorf("ending the workloads: %w", err)
		}
	}
	return step.WaitFor(podsPause, v1alpha1.ReasonCloudSpaceSuspended, fmt.Sprintf("being suspended: waiting for %s pods of the workloads to end", used.String()))
}

// askedToEnd remembers when the workloads of a CloudSpace were last asked to end. It is memory only.
type askedToEnd struct{ byName sync.Map }

func (a *askedToEnd) due(cloudSpace types.NamespacedName, now time.Time) bool {
	last, _ := a.byName.Load(cloudSpace)
	if at, ok := last.(time.Time); ok && now.Sub(at).Abs() < podsPause {
		return false
	}
	a.byName.Store(cloudSpace, now)
	return true
}

func (a *askedToEnd) forget(cloudSpace types.NamespacedName) { a.byName.Delete(cloudSpace) }

// atRest tells whether a CloudSpace is suspended and has nothing left to do.
func atRest(conditions []metav1.Condition) bool {
	ready, reconciling := false, false
	for _, c := range conditions {
		ready = ready || c.Type == v1alpha1.ConditionReady && c.Reason == v1alpha1.ReasonCloudSpaceSuspended
		reconciling = reconciling || c.Type == v1alpha1.ConditionReconciling || c.Type == v1alpha1.ConditionStalled
	}
	return ready && !reconciling
}
