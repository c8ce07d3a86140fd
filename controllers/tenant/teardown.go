// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

// teardownRetry is how often a part that is being deleted is looked at, should its watch not tell.
const teardownRetry = 5 * time.Second

// teardown is the whole way down, in order. The last step reads live whether anything is left.
func (r *Reconciler) teardown() []step.Step[*scope] {
	return []step.Step[*scope]{
		{Proves: "RemoveCloudSpaces", Do: r.removeCloudSpaces},
		{Proves: "RemoveKubeconfig", Do: r.removeKubeconfig},
		{Proves: "RemoveNamespace", Do: r.removeNamespace},
		{Proves: "RemoveQuota", Do: r.removeQuota},
		{Proves: "VerifyGone", Do: r.verifyGone},
	}
}

// takeDown makes one pass of the way down, and lets the Tenant go when nothing is left.
func (r *Reconciler) takeDown(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.object, v1alpha1.FinalizerTenant) {
		return ctrl.Result{}, nil
	}
	if err := apply.Read(ctx, r.Client, &s.observed.quota, "", s.object.Name); err != nil {
		return step.Result(err)
	}
	outcomes := step.Run(ctx, s, r.teardown())
	err := step.FirstError(outcomes)
	recordError(err)
	if err == nil {
		return step.Result(r.RemoveFinalizer(ctx, s.object, v1alpha1.FinalizerTenant))
	}
	if step.Class(err) != "Stale" {
		if err := r.writeStatus(ctx, s.object, deletingStatus(s, outcomes, r.Clock.Now())); err != nil {
			return step.Result(err)
		}
	}
	return step.Result(err)
}

// removeCloudSpaces deletes the CloudSpaces in the tenant's namespace, and waits for each to be taken down. One that is
// protected from deletion is left, and named, until the protection is lifted.
func (r *Reconciler) removeCloudSpaces(ctx context.Context, s *scope) error {
	list := &v1alpha1.CloudSpaceList{}
	if err := r.Client.List(ctx, list, client.InNamespace(names.TenantNamespace(s.object.Name))); err != nil {
		return err
	}
	s.observed.cloudSpaces = list.Items
	for i := range list.Items {
		if list.Items[i].Spec.DeletionProtection {
			continue
		}
		if err := r.Remove(ctx, s.owner, &list.Items[i]); err != nil {
			return err
		}
	}
	return remainingCloudSpaces(list.Items)
}

// remainingCloudSpaces says what is waited for: those that nobody may delete first.
func remainingCloudSpaces(left []v1alpha1.CloudSpace) error {
	if len(left) == 0 {
		return nil
	}
	for i := range left {
		if left[i].Spec.DeletionProtection && left[i].DeletionTimestamp.IsZero() {
			return step.WaitFor(teardownRetry, v1alpha1.ReasonDeletionProtected,
				fmt.Sprintf("CloudSpace %s is protected from deletion: set its spec.deletionProtection to false", left[i].Name))
		}
	}
	return step.WaitFor(teardownRetry, v1alpha1.ReasonRemaining, fmt.Sprintf("waiting for %d CloudSpaces to be deleted, %s among them", len(left), left[0].Name))
}

func (r *Reconciler) removeKubeconfig(ctx context.Context, s *scope) error {
	gone, err := r.Delete(ctx, s.owner, kubeconfigSecret(s))
	if err != nil || gone {
		return err
	}
	return step.WaitFor(teardownRetry, v1alpha1.ReasonRemaining, "waiting for the kubeconfig")
}

// removeNamespace takes the namespace down. A CloudSpace in it that no cache has seen is deleted with it, and held by its
// finalizer, until it is taken down too.
func (r *Reconciler) removeNamespace(ctx context.Context, s *scope) error {
	gone, err := r.Delete(ctx, s.owner, tenantNamespace(s))
	if err != nil || gone {
		return err
	}
	return step.WaitFor(teardownRetry, v1alpha1.ReasonRemaining, "waiting for the tenant's namespace")
}

// removeQuota comes last: until then CloudSpaces that are taken down hold what they had. An administrator's own quota stays. Nobody holds
// it, so that whether it is gone is not waited for, but verified.
func (r *Reconciler) removeQuota(ctx context.Context, s *scope) error {
	if stays, err := r.quotaStays(ctx, s, r.Client); stays || err != nil {
		return err
	}
	_, err := r.Delete(ctx, s.owner, tenantQuota(s))
	return err
}

// quotaStays tells whether the TenantQuota is the administrators' own, or not there.
func (r *Reconciler) quotaStays(ctx context.Context, s *scope, reader client.Reader) (bool, error) {
	if err := apply.Read(ctx, reader, &s.observed.quota, "", s.object.Name); err != nil || s.observed.quota == nil {
		return err == nil, err
	}
	return s.hasOwnQuota()
}

// verifyGone lets nothing of a Tenant outlive it, even when a cache was behind all the way down.
func (r *Reconciler) verifyGone(ctx context.Context, s *scope) error {
	left := []client.Object{kubeconfigSecret(s), tenantNamespace(s)}
	stays, err := r.quotaStays(ctx, s, r.Live)
	if err != nil {
		return err
	}
	if !stays {
		left = append(left, tenantQuota(s))
	}
	for _, object := range left {
		gone, err := r.Verify(ctx, s.owner, object)
		if err != nil {
			return err
		}
		if !gone {
			return step.WaitFor(teardownRetry, v1alpha1.ReasonRemaining, "waiting for "+object.GetName())
		}
	}
	return nil
}

func kubeconfigSecret(s *scope) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: names.TenantKubeconfigSecret(s.object.Name), Namespace: names.SystemNamespace}}
}

func tenantNamespace(s *scope) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.TenantNamespace(s.object.Name)}}
}

func tenantQuota(s *scope) *v1alpha1.TenantQuota {
	return &v1alpha1.TenantQuota{ObjectMeta: metav1.ObjectMeta{Name: s.object.Name}}
}
