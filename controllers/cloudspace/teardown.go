// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// Steps of the way down that wait for Flux, as the report in status calls them.
const (
	stepReleaseInner        = "ReleaseInner"
	stepReleaseControlPlane = "ReleaseControlPlane"
)

// teardown is the whole way down, in order. The last step reads live whether anything is left.
func (r *Reconciler) teardown() []step.Step[*scope] {
	return []step.Step[*scope]{
		{Proves: stepReleaseInner, Do: r.releaseInner},
		{Proves: stepReleaseControlPlane, Do: r.releaseControlPlane},
		{Proves: "RemoveKubeconfig", Do: r.removeKubeconfig},
		{Proves: "RemoveNamespace", Do: r.removeNamespace},
		{Proves: "VerifyGone", Do: r.verifyGone},
	}
}

// takeDown makes one pass of the way down, and lets the CloudSpace go when nothing is left.
func (r *Reconciler) takeDown(ctx context.Context, s *scope) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(s.object, v1alpha1.FinalizerCloudSpace) {
		r.forget(s.key())
		return ctrl.Result{}, nil
	}
	outcomes := step.Run(ctx, s, r.teardown())
	err := step.FirstError(outcomes)
	recordError(err)
	if err == nil {
		r.forget(s.key())
		r.Rollout.Leave(s.object.UID)
		return step.Result(r.RemoveFinalizer(ctx, s.object, v1alpha1.FinalizerCloudSpace))
	}
	if step.Class(err) != "Stale" {
		now := r.Clock.Now()
		if err := r.writeStatus(ctx, s.object, deletingStatus(s, outcomes, now), now); err != nil {
			return step.Result(err)
		}
	}
	return step.Result(err)
}

// forget drops what is kept in memory of a CloudSpace, and ends its watches.
func (r *Reconciler) forget(cloudSpace types.NamespacedName) {
	r.Kubeconfigs.Forget(cloudSpace)
	r.PullSecrets.Forget(cloudSpace)
	r.fluxProven.forget(cloudSpace)
	r.looks.forget(cloudSpace)
	r.ended.forget(cloudSpace)
}

// releaseInner uninstalls what is installed inside, so that what it made elsewhere can go; for as long as the deadline
// allows. After it, or when the CloudSpace cannot be reached, the releases are let go as they are: all they run in goes next.
func (r *Reconciler) releaseInner(ctx context.Context, s *scope) error {
	if s.tenantID == "" {
		return nil
	}
	for _, name := range []string{s.names.AdvisorRelease(), s.names.FluxRelease()} {
		release := helmRelease(name)
		gone, err := r.Delete(ctx, s.owner, release)
		if err != nil {
			return err
		}
		if gone {
			continue
		}
		if r.overdue(s, r.Platform.Deadlines.InnerRelease.Duration) {
			if err := r.suspend(ctx, release); err != nil {
				return err
			}
		}
		if err := r.waitForRelease(s, stepReleaseInner, "release "+name, release); err != nil {
			return err
		}
	}
	return nil
}

// waitForRelease waits for Flux as long as the deadline allows. After it the way down goes on: what was installed in the host namespace
// goes with that. The release is waited for last, and its step is not done until then.
func (r *Reconciler) waitForRelease(s *scope, name, what string, release *helmv2.HelmRelease) error {
	message := waitsFor(what, release, r.Clock.Now())
	if !r.overdue(s, r.Platform.Deadlines.Release.Duration) {
		return step.WaitFor(teardownRetry, v1alpha1.ReasonRemaining, message)
	}
	if s.left == nil {
		s.left = map[string]string{}
	}
	s.left[name] = message
	return nil
}

// overdue goes by the API server's clock and by our own: one that is behind would make the wait as much longer, and so would one
// that jumped back by more than the whole wait.
func (r *Reconciler) overdue(s *scope, deadline time.Duration) bool {
	now := r.Clock.Now()
	if now.After(s.object.DeletionTimestamp.Add(deadline)) {
		return true
	}
	for _, t := range s.object.Status.Timeline {
		if t.Phase == string(v1alpha1.CloudSpaceDeleting) {
			passed := now.Sub(t.Time.Time)
			return passed > deadline || passed < -deadline
		}
	}
	return false
}

// suspend makes Flux drop its finalizer without uninstalling.
func (r *Reconciler) suspend(ctx context.Context, release *helmv2.HelmRelease) error {
	if release.Spec.Suspend {
		return nil
	}
	before := release.DeepCopy()
	release.Spec.Suspend = true
	return client.IgnoreNotFound(r.Client.Patch(ctx, release, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// releaseControlPlane has Flux uninstall the vCluster. Flux would let go of a release that somebody suspended without doing so: it is
// resumed first.
func (r *Reconciler) releaseControlPlane(ctx context.Context, s *scope) error {
	if s.tenantID == "" {
		return nil
	}
	release := helmRelease(s.names.ControlPlaneRelease())
	if err := r.resume(ctx, s.owner, release); err != nil {
		return err
	}
	gone, err := r.Delete(ctx, s.owner, release)
	if err != nil || gone {
		return err
	}
	return r.waitForRelease(s, stepReleaseControlPlane, "the control plane", release)
}

func (r *Reconciler) resume(ctx context.Context, owner apply.Owner, release *helmv2.HelmRelease) error {
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(release), release); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !release.Spec.Suspend || !owner.Owns(release) || !release.DeletionTimestamp.IsZero() || r.Memory.Behind(release) {
		return nil
	}
	before := release.DeepCopy()
	release.Spec.Suspend = false
	return client.IgnoreNotFound(r.Client.Patch(ctx, release, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

func (r *Reconciler) removeKubeconfig(ctx context.Context, s *scope) error {
	if s.tenantID == "" {
		return nil
	}
	r.Kubeconfigs.Forget(s.key())
	r.PullSecrets.Forget(s.key())
	remaining := false
	for _, secret := range kubeconfigSecrets(s) {
		gone, err := r.Delete(ctx, s.owner, secret)
		if err != nil {
			return err
		}
		remaining = remaining || !gone
	}
	if !remaining {
		return nil
	}
	return step.WaitFor(teardownRetry, v1alpha1.ReasonRemaining, "waiting for the kubeconfig")
}

// removeNamespace takes the host namespace down and with it the volumes and the workloads.
func (r *Reconciler) removeNamespace(ctx context.Context, s *scope) error {
	if s.tenantID == "" {
		return nil
	}
	namespace := hostNamespace(s)
	gone, err := r.Delete(ctx, s.owner, namespace)
	if err != nil || gone {
		return err
	}
	return step.WaitFor(teardownRetry, v1alpha1.ReasonRemaining, waitsFor("the host namespace", namespace, r.Clock.Now()))
}

// verifyGone lets nothing of a CloudSpace outlive it, even when a cache was behind all the way down.
func (r *Reconciler) verifyGone(ctx context.Context, s *scope) error {
	if s.tenantID == "" {
		return nil
	}
	left := []client.Object{
		helmRelease(s.names.AdvisorRelease()), helmRelease(s.names.FluxRelease()), helmRelease(s.names.ControlPlaneRelease()), hostNamespace(s),
	}
	for _, object := range append(left, kubeconfigSecrets(s)...) {
		gone, err := r.Verify(ctx, s.owner, object)
		if err != nil {
			return err
		}
		if !gone {
			return step.WaitFor(teardownRetry, v1alpha1.ReasonRemaining, waitsFor(whatIs(object), object, r.Clock.Now()))
		}
	}
	return nil
}

// kubeconfigSecrets are those that the CloudSpace has, by its endpoint, which never changes.
func kubeconfigSecrets(s *scope) []client.Object {
	secret := func(name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: names.SystemNamespace}}
	}
	if s.outside() {
		return []client.Object{secret(s.names.KubeconfigSecret()), secret(s.names.InternalKubeconfigSecret())}
	}
	return []client.Object{secret(s.names.KubeconfigSecret())}
}

func hostNamespace(s *scope) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.HostNamespace()}}
}

func helmRelease(name string) *helmv2.HelmRelease {
	return &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: names.SystemNamespace}}
}
