// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"errors"
	"math/bits"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

const (
	// cloudSpaceCount is how a ResourceQuota calls the number of CloudSpace objects.
	cloudSpaceCount = corev1.ResourceName("count/cloudspaces.tenancy.kubeopera.io")
	// maxCloudSpaces is the most that a TenantQuota can allow.
	maxCloudSpaces = 500
	// waitingObjects are how many CloudSpaces more than are allowed may exist: those that wait for room.
	waitingObjects = 20
	// firstNudge is how old a quota is when Kubernetes is made to count it; it is again each time that the quota is twice as old.
	firstNudge = 5 * time.Second
)

// ensureQuota gives a Tenant that has no TenantQuota the default of the platform. An administrator's own, made by them or
// changed by them since, is left alone.
func (r *Reconciler) ensureQuota(ctx context.Context, s *scope) error {
	o := &s.observed
	own, err := s.hasOwnQuota()
	if err != nil || own {
		return err
	}
	desired, err := desiredTenantQuota(s, r.Platform.TenantQuota.Hard)
	if err != nil {
		return err
	}
	o.quota, err = apply.Ensure(ctx, r.Applier, s.owner, o.quota, desired)
	if notOurs(err) {
		// An administrator made one that the cache has not seen yet.
		return step.ErrStale
	}
	return err
}

func notOurs(err error) bool {
	terminal, ok := errors.AsType[*step.TerminalError](err)
	return ok && terminal.Reason == v1alpha1.ReasonNotOurs
}

// hasOwnQuota tells whether the TenantQuota is the administrators' own: they made it, or its spec is not the one that it got from us.
func (s *scope) hasOwnQuota() (bool, error) {
	existing := s.observed.quota
	if existing == nil {
		return false, nil
	}
	if !s.owner.Owns(existing) {
		return true, nil
	}
	digest, err := digestOf(existing.Spec.Hard)
	return digest != existing.Annotations[v1alpha1.AnnotationDefaultQuota], err
}

func desiredTenantQuota(s *scope, hard v1alpha1.QuotaAmounts) (*v1alpha1.TenantQuota, error) {
	if len(hard) == 0 {
		// As it comes back from the API server: an empty map would be written again in each pass.
		hard = nil
	}
	digest, err := digestOf(hard)
	if err != nil {
		return nil, err
	}
	return &v1alpha1.TenantQuota{
		ObjectMeta: metav1.ObjectMeta{Name: s.object.Name, Annotations: map[string]string{v1alpha1.AnnotationDefaultQuota: digest}},
		Spec:       v1alpha1.TenantQuotaSpec{Hard: hard},
	}, nil
}

// ensureObjectQuota bounds the CloudSpace objects of the tenant: as many as it may have, and some that wait. It comes after the default
// one is made: until Kubernetes has counted, it refuses them all.
func (r *Reconciler) ensureObjectQuota(ctx context.Context, s *scope) (err error) {
	o := &s.observed
	if o.objectQuota, err = apply.Ensure(ctx, r.Applier, s.owner, o.objectQuota, desiredObjectQuota(s, r.Clock.Now())); err != nil {
		return err
	}
	if !counted(o.objectQuota) {
		s.comeBack = max(firstNudge, r.Clock.Since(o.objectQuota.CreationTimestamp.Time))
	}
	return nil
}

func desiredObjectQuota(s *scope, now time.Time) *corev1.ResourceQuota {
	most := *resource.NewQuantity(objectsOf(s.observed.quota)+nudge(s.observed.objectQuota, now), resource.DecimalSI)
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: names.HostQuota, Namespace: names.TenantNamespace(s.object.Name)},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{cloudSpaceCount: most}},
	}
}

// objectsOf is an even number of objects, as many as there may be.
func objectsOf(quota *v1alpha1.TenantQuota) int64 {
	most := int64(maxCloudSpaces)
	if quota != nil {
		if allowed, ok := quota.Spec.Hard[v1alpha1.QuotaCloudSpaces]; ok {
			most = allowed.Value()
		}
	}
	return most + most%2 + waitingObjects
}

// nudge is one object more, now and then, while Kubernetes has not counted: it counts a kind that it did not know of when a quota was made
// only when that changes, or minutes later. Once it has counted, the number stays.
func nudge(live *corev1.ResourceQuota, now time.Time) int64 {
	if live == nil {
		return 0
	}
	if counted(live) {
		hard := live.Spec.Hard[cloudSpaceCount]
		return hard.Value() % 2
	}
	return int64(bits.Len64(uint64(max(0, now.Sub(live.CreationTimestamp.Time)/firstNudge)))) & 1
}

func counted(live *corev1.ResourceQuota) bool {
	_, ok := live.Status.Used[cloudSpaceCount]
	return ok
}
