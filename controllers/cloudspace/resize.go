// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/step"
)

// plan is what the quotas of a host namespace are to be, and what they can be in this pass: what is used is not taken away.
type plan struct {
	target, next shares
	// beside is what the total quota counts beside target.total, nextBeside what it can be in this pass.
	beside, nextBeside corev1.ResourceList
	// sizes are the control planes that there is room for, podStorage is what each pod may use of a node's disk.
	sizes      []configv1alpha1.Size
	podStorage resource.Quantity
	// refused says that what was asked for is too little for the control plane that runs: all stays as it is.
	refused bool
}

// planQuotas decides without asking anybody.
func (r *Reconciler) planQuotas(s *scope) (plan, error) {
	q := s.observed.quotas
	p := plan{sizes: r.sizes(s)}
	p.podStorage = podStorage(p.sizes, r.Platform)
	total := forPods(s.granted, r.Platform.LimitFactors)
	p.beside = beside(s.granted, p.podStorage, s.object.Spec.Endpoint.Type)
	if err := r.fitAll(s, p.sizes); err != nil {
		if !s.established() {
			return plan{}, err
		}
		p.refused = true
		if q.total != nil {
			total = only(q.total.Spec.Hard, perPods...)
			maps.Copy(p.beside, only(q.total.Spec.Hard, slices.Collect(maps.Keys(p.beside))...))
		}
	}
	p.divide(s, total)
	p.nextBeside = follows(p.beside, q.total)
	if !p.refused {
		p.divideDisk(q.total)
	}
	return p, nil
}

// divideDisk allows each of the pods that there can be its part of a node's disk. It is lowered at once, when it can be: the control plane
// has no share of its own of it.
func (p *plan) divideDisk(total *corev1.ResourceQuota) {
	pods := p.next.total[corev1.ResourcePods]
	for _, disk := range []corev1.ResourceName{corev1.ResourceRequestsEphemeralStorage, corev1.ResourceLimitsEphemeralStorage} {
		p.nextBeside[disk] = times(p.podStorage, pods.Value())
		if total == nil {
			continue
		}
		used, hard := total.Status.Used[disk], total.Spec.Hard[disk]
		if used.Cmp(p.nextBeside[disk]) > 0 && hard.Cmp(p.nextBeside[disk]) > 0 {
			p.nextBeside[disk] = hard
		}
	}
}

// fitAll tells whether what was granted has room for each of the sizes.
func (r *Reconciler) fitAll(s *scope, sizes []configv1alpha1.Size) error {
	for _, size := range sizes {
		if err := s.hasRoom(size, r.Platform.LimitFactors); err != nil {
			return err
		}
	}
	return nil
}

// divide gives the control plane what it needs of all that pods may use. Workloads keep what they use, within what there was, and
// never what the control plane needs that runs.
func (p *plan) divide(s *scope, total corev1.ResourceList) {
	q, of := s.observed.quotas, membersOf(s.object.Spec.ControlPlane)
	share := corev1.ResourceList{}
	for _, size := range p.sizes {
		share = larger(share, controlPlaneShare(of, size))
	}
	runs := share
	if running, ok := runningSize(s.observed.controlPlane); ok {
		runs = controlPlaneShare(of, running)
	}
	p.target = split(total, share)
	bound := p.target.total
	if q.total != nil {
		bound = larger(bound, only(q.total.Spec.Hard, perPods...))
	}
	workloads := smaller(follows(p.target.workloads, q.workloads), minus(bound, runs))
	controlPlane := smaller(follows(p.target.controlPlane, q.controlPlane), minus(bound, workloads))
	p.next = shares{total: sum(controlPlane, workloads), controlPlane: controlPlane, workloads: workloads}
}

// follows is what a quota becomes on its way to what it should be: never less than what is used of it, and what is used lowers it more
// and more. What is used and not known yet lowers nothing.
func follows(target corev1.ResourceList, quota *corev1.ResourceQuota) corev1.ResourceList {
	if quota == nil {
		return target
	}
	stands := smaller(quota.Status.Used, quota.Spec.Hard)
	return larger(target, only(stands, slices.Collect(maps.Keys(target))...))
}

// follow tells whether the quotas follow this generation's spec once they are what they can be in this pass: nothing of them is lowered
// that Kubernetes could still grant, and no more is used than there should be.
func (p plan) follow(q quotas) bool {
	if p.refused || !q.none() && !q.complete() {
		return false
	}
	if q.none() {
		return true
	}
	targets := []corev1.ResourceList{sum(p.target.total, p.beside), p.target.controlPlane, p.target.workloads}
	for i, quota := range q.all() {
		if !enforced(quota) || !within(quota.Spec.Hard, targets[i]) || !within(quota.Status.Used, targets[i]) {
			return false
		}
	}
	return within(p.next.controlPlane, p.target.controlPlane) && within(p.next.workloads, p.target.workloads) && within(p.nextBeside, p.beside)
}

// enforced tells whether Kubernetes has taken up a quota: it goes by what its status says.
func enforced(quota *corev1.ResourceQuota) bool {
	return equality.Semantic.DeepEqual(quota.Spec.Hard, quota.Status.Hard)
}

// ensureQuotas makes the quotas what they can be in this pass.
func (r *Reconciler) ensureQuotas(ctx context.Context, s *scope, p plan) error {
	if err := r.writeQuotas(ctx, s, p); err != nil {
		return err
	}
	for _, quota := range s.observed.quotas.all() {
		if !enforced(quota) {
			err := step.Wait(v1alpha1.ReasonWaitingForQuota, "waiting for the quota of the host namespace to be enforced")
			if s.established() {
				// It is resized, and works on.
				return step.Advisory(err)
			}
			return err
		}
	}
	if blocked := p.blocked(s.observed.quotas); blocked != "" {
		return step.Advisory(step.Wait(v1alpha1.ReasonResizeBlocked, blocked))
	}
	return nil
}

// writeQuotas lowers shares before the total, and raises them after it: at no moment, whoever is stopped where, is the share of the
// control plane in another one's. The total says which generation's spec all follow.
func (r *Reconciler) writeQuotas(ctx context.Context, s *scope, p plan) (err error) {
	q, follows := &s.observed.quotas, p.follow(s.observed.quotas)
	if lowered := q.controlPlane; lowered != nil && !within(lowered.Spec.Hard, p.next.controlPlane) {
		between := smaller(only(lowered.Spec.Hard, perPods...), p.next.controlPlane)
		if q.controlPlane, err = apply.Ensure(ctx, r.Applier, s.owner, lowered, desiredControlPlaneQuota(s, between)); err != nil {
			return err
		}
	}
	if lowered := q.workloads; lowered != nil && !within(lowered.Spec.Hard, p.next.workloads) {
		between := smaller(only(lowered.Spec.Hard, perPods...), p.next.workloads)
		if q.workloads, err = apply.Ensure(ctx, r.Applier, s.owner, lowered, desiredWorkloadQuota(s, between)); err != nil {
			return err
		}
	}
	total := desiredQuota(s, sum(p.next.total, p.nextBeside))
	if follows {
		metav1.SetMetaDataAnnotation(&total.ObjectMeta, v1alpha1.AnnotationGeneration, strconv.FormatInt(s.object.Generation, 10))
	}
	if q.total, err = apply.Ensure(ctx, r.Applier, s.owner, q.total, total); err != nil {
		return err
	}
	if q.controlPlane, err = apply.Ensure(ctx, r.Applier, s.owner, q.controlPlane, desiredControlPlaneQuota(s, p.next.controlPlane)); err != nil {
		return err
	}
	q.workloads, err = apply.Ensure(ctx, r.Applier, s.owner, q.workloads, desiredWorkloadQuota(s, p.next.workloads))
	return err
}

// seesTheLatest refuses to go on with a spec that is older than the one that the quotas follow: what it asks for may have been given to
// others since. An annotation that is ahead of the API server was not written by us, and counts for nothing.
func seesTheLatest(ctx context.Context, s *scope) error {
	quota := s.observed.quotas.total
	if quota == nil || generationOf(quota) <= s.object.Generation {
		return nil
	}
	return s.owner.Confirm(ctx)
}

// generationOf is the generation of the spec that a quota follows; zero when it says none.
func generationOf(quota client.Object) int64 {
	generation, _ := strconv.ParseInt(quota.GetAnnotations()[v1alpha1.AnnotationGeneration], 10, 64)
	return generation
}

// blocked says what keeps the quotas from being as low as they should be; empty when nothing does.
func (p plan) blocked(q quotas) string {
	for _, of := range []struct {
		quota  *corev1.ResourceQuota
		target corev1.ResourceList
		whose  string
	}{{q.workloads, p.target.workloads, "workloads use"}, {q.controlPlane, p.target.controlPlane, "the control plane uses"}, {q.total, p.beside, "there are"}} {
		for _, name := range requestsFirst(of.target) {
			share, used, total := of.target[name], of.quota.Status.Used[name], sum(p.target.total, p.beside)[name]
			if used.Cmp(share) > 0 {
				return fmt.Sprintf("%s cannot be lowered to %s yet: %s %s, and %s would be left", wordFor(name), total.String(), of.whose, used.String(), share.String())
			}
		}
	}
	return ""
}

// requestsFirst are the resources that people ask for, then the limits that follow from them.
func requestsFirst(list corev1.ResourceList) []corev1.ResourceName {
	names := slices.Sorted(maps.Keys(list))
	isLimit := func(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), "limits.") }
	return append(slices.DeleteFunc(slices.Clone(names), isLimit), slices.DeleteFunc(names, func(n corev1.ResourceName) bool { return !isLimit(n) })...)
}

// wordFor is what people call a resource of a quota.
func wordFor(name corev1.ResourceName) string {
	switch name {
	case corev1.ResourceRequestsCPU:
		return "cpu"
	case corev1.ResourceRequestsMemory:
		return "memory"
	case corev1.ResourceRequestsStorage:
		return "storage"
	case corev1.ResourceLimitsCPU:
		return "the sum of cpu limits"
	case corev1.ResourceLimitsMemory:
		return "the sum of memory limits"
	default:
		return string(name)
	}
}

// lacksRoom tells why a control plane that runs cannot get another size yet; nil when it can.
func (r *Reconciler) lacksRoom(s *scope, size configv1alpha1.Size) error {
	quota := s.observed.quotas.controlPlane
	if !s.established() || quota == nil || within(controlPlaneShare(membersOf(s.object.Spec.ControlPlane), size), quota.Spec.Hard) {
		return nil
	}
	return step.Wait(v1alpha1.ReasonResizeBlocked, "the control plane keeps its size until there is room for the other: workloads use it, or it is not granted yet")
}
