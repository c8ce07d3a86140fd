// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
)

// etcdBudgetName is the PodDisruptionBudget of etcd in a host namespace. That of the control plane is the chart's.
const etcdBudgetName = "cloudspace-etcd"

// members are how many pods of each part a control plane has.
type members struct {
	controlPlane, etcd int32
}

func membersOf(controlPlane v1alpha1.ControlPlane) members {
	if controlPlane.HighAvailability {
		return members{controlPlane: 2, etcd: 3}
	}
	return members{controlPlane: 1, etcd: 1}
}

// highAvailabilityValues make one control plane several: spread over nodes where there are some, evicted one at a time, and with a
// lease as short as Kubernetes' own. etcd spreads its members by the chart's default.
func highAvailabilityValues(values *Values, n names.CloudSpace) {
	controlPlane := &values.ControlPlane
	controlPlane.Advanced.PodDisruptionBudget = &PodDisruptionBudgetValues{Enabled: true, MaxUnavailable: 1, UnhealthyPodEvictionPolicy: string(policyv1.AlwaysAllow)}
	controlPlane.StatefulSet.HighAvailability.LeaseDuration = 15
	controlPlane.StatefulSet.HighAvailability.RenewDeadline = 10
	controlPlane.StatefulSet.HighAvailability.RetryPeriod = 2
	spread := func(over string) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: over, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector:  &metav1.LabelSelector{MatchLabels: chartLabels("vcluster", n)},
			MatchLabelKeys: []string{appsv1.DefaultDeploymentUniqueLabelKey},
		}
	}
	controlPlane.StatefulSet.Scheduling = &SpreadValues{
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{spread(corev1.LabelHostname), spread(corev1.LabelTopologyZone)},
	}
}

// chartLabels are how the chart finds the pods of a part.
func chartLabels(part string, n names.CloudSpace) map[string]string {
	return map[string]string{"app": part, "release": n.HostName()}
}

func (r *Reconciler) observeHighAvailability(ctx context.Context, s *scope) error {
	if !s.object.Spec.ControlPlane.HighAvailability {
		return nil
	}
	return apply.Read(ctx, r.Client, &s.observed.etcdBudget, s.names.HostNamespace(), etcdBudgetName)
}

// ensureDisruptionBudget lets nodes be emptied without etcd losing its quorum.
func (r *Reconciler) ensureDisruptionBudget(ctx context.Context, s *scope) (err error) {
	if !s.object.Spec.ControlPlane.HighAvailability {
		return nil
	}
	o := &s.observed
	o.etcdBudget, err = apply.Ensure(ctx, r.Applier, s.owner, o.etcdBudget, desiredEtcdBudget(s))
	return err
}

func desiredEtcdBudget(s *scope) *policyv1.PodDisruptionBudget {
	one, always := intstr.FromInt32(1), policyv1.AlwaysAllow
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: etcdBudgetName, Namespace: s.names.HostNamespace()},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             &one,
			Selector:                   &metav1.LabelSelector{MatchLabels: chartLabels("vcluster-etcd", s.names)},
			UnhealthyPodEvictionPolicy: &always,
		},
	}
}

// servesOn tells whether a control plane that has lost members goes on without them, which is what the others are for: an API server
// is available and etcd has its quorum, all as they are specified now.
func (o observed) servesOn() bool {
	d, s := o.apiServer, o.etcd
	if d == nil || s == nil || replicas(d.Spec.Replicas) == 1 {
		return false
	}
	wanted := writtenRevision(o.controlPlane)
	if d.Annotations[annotationRevision] != wanted || s.Annotations[annotationRevision] != wanted {
		return false
	}
	return available(d) && d.Status.Replicas == d.Status.UpdatedReplicas && d.Status.AvailableReplicas > 0 &&
		s.Status.ObservedGeneration == s.Generation && s.Status.CurrentRevision == s.Status.UpdateRevision &&
		s.Status.ReadyReplicas > replicas(s.Spec.Replicas)/2
}

// tellLost says on the proven control plane what it has lost and goes on without.
func tellLost(conditions []metav1.Condition, o observed) {
	proven := meta.FindStatusCondition(conditions, v1alpha1.ConditionControlPlaneReady)
	if proven == nil || proven.Status != metav1.ConditionTrue || o.notRunning() == "" || !o.servesOn() {
		return
	}
	proven.Reason = v1alpha1.ReasonRedundancyLost
	proven.Message = fmt.Sprintf("%d of %d API servers and %d of %d members of etcd run", o.apiServer.Status.AvailableReplicas,
		replicas(o.apiServer.Spec.Replicas), o.etcd.Status.ReadyReplicas, replicas(o.etcd.Spec.Replicas))
}
