// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/retry"
	"github.com/tantilium/cloud-runner/internal/step"
)

// steps is the whole way up, in order.
func (r *Reconciler) steps() []step.Step[*scope] {
	return []step.Step[*scope]{
		{Proves: v1alpha1.ConditionNamespaceReady, Do: r.ensureNamespace},
		{Proves: v1alpha1.ConditionQuotaConfigured, Do: r.ensureQuota},
		{Proves: v1alpha1.ConditionAccessConfigured, Do: r.ensureAccess},
		{Proves: v1alpha1.ConditionCloudSpaceReady, Do: r.ensureCloudSpace},
		{Proves: v1alpha1.ConditionKubeconfigReady, Do: r.ensureKubeconfig},
	}
}

// ensureNamespace makes the tenant's namespace, or takes the one that an administrator made beforehand for this tenant.
func (r *Reconciler) ensureNamespace(ctx context.Context, s *scope) (err error) {
	o := &s.observed
	if madeBeforehand(o.namespace, s.object.Name) {
		return r.Claim(ctx, s.owner, o.namespace)
	}
	o.namespace, err = apply.Ensure(ctx, r.Applier, s.owner, o.namespace, desiredNamespace(s))
	return err
}

// madeBeforehand tells whether a namespace carries the label of this tenant, which only administrators can set, and belongs
// to no Tenant yet.
func madeBeforehand(namespace *corev1.Namespace, id string) bool {
	if namespace == nil || !namespace.DeletionTimestamp.IsZero() || namespace.Labels[v1alpha1.LabelTenant] != id {
		return false
	}
	_, claimed := namespace.Labels[v1alpha1.LabelOwnerUID]
	return !claimed
}

func (r *Reconciler) ensureAccess(ctx context.Context, s *scope) error {
	for role := range roleNames {
		binding, err := apply.Ensure(ctx, r.Applier, s.owner, s.observed.access[role], desiredAccess(s, role))
		if err != nil {
			return err
		}
		s.observed.access[role] = binding
	}
	return nil
}

// ensureCloudSpace makes the default CloudSpace and follows it: what it waits for, or fails with, is said of the Tenant too.
// How many there can be is bounded before that when it was already, or else after it, whatever became of it: a new bound refuses all until
// Kubernetes has counted, and an old one may be too low by now.
func (r *Reconciler) ensureCloudSpace(ctx context.Context, s *scope) error {
	if err := r.dropKubeconfig(ctx, s); err != nil {
		return err
	}
	bounded := s.observed.objectQuota != nil
	if bounded {
		if err := r.ensureObjectQuota(ctx, s); err != nil {
			return err
		}
	}
	made := r.makeCloudSpace(ctx, s)
	if !bounded {
		if err := r.ensureObjectQuota(ctx, s); err != nil {
			return err
		}
	}
	if made != nil {
		return made
	}
	return follow(s.observed.cloudSpace)
}

// makeCloudSpace makes the default CloudSpace like its template. One that somebody else made under the name default, in the tenant's own
// namespace, is not altered.
func (r *Reconciler) makeCloudSpace(ctx context.Context, s *scope) error {
	o := &s.observed
	if o.cloudSpace != nil && !s.owner.Owns(o.cloudSpace) {
		return nil
	}
	desired, err := desiredCloudSpace(s)
	if err != nil {
		return err
	}
	isNew := o.cloudSpace == nil
	if o.cloudSpace, err = apply.Ensure(ctx, r.Applier, s.owner, o.cloudSpace, desired); apierrors.IsInvalid(err) {
		return step.Terminal(v1alpha1.ReasonInvalidTemplate, fmt.Sprintf("the default CloudSpace cannot be made like its template: %v", err))
	} else if err != nil {
		return err
	}
	if isNew {
		o.cloudSpaces = append(o.cloudSpaces, *o.cloudSpace)
	}
	return nil
}

// dropKubeconfig removes the copy of a kubeconfig that opens nothing any more: its CloudSpace is gone or going, and a new one has none yet.
// What status says of the CloudSpace does not count: after a restore of the host's etcd it is of the past.
func (r *Reconciler) dropKubeconfig(ctx context.Context, s *scope) error {
	o := &s.observed
	if o.kubeconfig == nil || !s.owner.Owns(o.kubeconfig) || opens(o.kubeconfig, o.cloudSpace) {
		return nil
	}
	if err := r.Remove(ctx, s.owner, o.kubeconfig); err != nil {
		return err
	}
	o.kubeconfig = nil
	return nil
}

// opens tells whether the copy of a kubeconfig is that of a CloudSpace, which is not being deleted.
func opens(kubeconfig *corev1.Secret, cloudSpace *v1alpha1.CloudSpace) bool {
	return cloudSpace != nil && cloudSpace.DeletionTimestamp.IsZero() && kubeconfig.Annotations[annotationOpens] == string(cloudSpace.UID)
}

// hasKubeconfig tells whether a CloudSpace has, or had before, a kubeconfig of its own.
func hasKubeconfig(cloudSpace *v1alpha1.CloudSpace) bool {
	return cloudSpace != nil && cloudSpace.DeletionTimestamp.IsZero() && cloudSpace.Status.Kubeconfig.Secret != ""
}

// passOnRequest asks the default CloudSpace for a retry that was asked of the Tenant. It comes before the steps: whatever becomes
// of them, the request counts as handled after the pass. A CloudSpace that is not there yet needs none.
func (r *Reconciler) passOnRequest(ctx context.Context, s *scope) error {
	if s.observed.cloudSpace == nil || !retry.Requested(s.object.Status.Retry, s.object.Annotations) {
		return nil
	}
	return r.Annotate(ctx, s.observed.cloudSpace, v1alpha1.AnnotationRetryRequested, s.object.Annotations[v1alpha1.AnnotationRetryRequested])
}

// follow says of the Tenant what the CloudSpace says of itself.
func follow(cloudSpace *v1alpha1.CloudSpace) error {
	ready := meta.FindStatusCondition(cloudSpace.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case cloudSpace.Status.ObservedGeneration != cloudSpace.Generation || ready == nil:
		return step.Wait(v1alpha1.ReasonCloudSpaceNotReady, "waiting for the default CloudSpace")
	case meta.IsStatusConditionTrue(cloudSpace.Status.Conditions, v1alpha1.ConditionStalled):
		stalled := meta.FindStatusCondition(cloudSpace.Status.Conditions, v1alpha1.ConditionStalled)
		return step.Terminal(stalled.Reason, stalled.Message)
	case meta.IsStatusConditionTrue(cloudSpace.Status.Conditions, v1alpha1.ConditionReady):
		return nil
	case cloudSpace.Status.Phase == v1alpha1.CloudSpaceSuspended:
		return step.Rest(ready.Reason, ready.Message)
	default:
		return step.Wait(ready.Reason, ready.Message)
	}
}

// ensureKubeconfig copies the kubeconfig of the default CloudSpace. The Secret must have been made for that very object.
func (r *Reconciler) ensureKubeconfig(ctx context.Context, s *scope) (err error) {
	o := &s.observed
	if o.source == nil || !ownedBy(o.source, o.cloudSpace.UID) {
		return step.Wait(v1alpha1.ReasonWaitingForKubeconfig, "waiting for the kubeconfig of the default CloudSpace")
	}
	o.kubeconfig, err = apply.Ensure(ctx, r.Applier, s.owner, o.kubeconfig, desiredKubeconfig(s))
	return err
}

func ownedBy(secret *corev1.Secret, uid types.UID) bool {
	return apply.Owner{UID: uid}.Owns(secret)
}
