// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

// patience is how long a control plane may take to start before its pods are looked at, and how often after that.
const patience = 10 * time.Second

// controlPlaneRuns tells whether etcd and API server run as they are specified now, and if they do not for a while, why. The
// rest of the control plane is in the API server's pod. Members that are lost later do not matter while the others serve.
func (r *Reconciler) controlPlaneRuns(ctx context.Context, s *scope) error {
	waitsFor := s.observed.notRunning()
	if waitsFor == "" || wasActive(s.object.Status.Timeline) && s.observed.servesOn() {
		return nil
	}
	began := meta.FindStatusCondition(s.object.Status.Conditions, v1alpha1.ConditionControlPlaneReady)
	begins := began == nil || began.Status != metav1.ConditionFalse || began.Reason == v1alpha1.ReasonCloudSpaceSuspended
	if begins || r.Clock.Since(began.LastTransitionTime.Time) < patience {
		return step.WaitFor(patience, v1alpha1.ReasonStarting, "waiting for "+waitsFor)
	}
	found, err := r.whyNotRunning(ctx, s)
	if err != nil {
		return err
	}
	if found == nil {
		return step.WaitFor(patience, v1alpha1.ReasonStarting, "waiting for "+waitsFor)
	}
	if s.retryNow && found.pod != nil {
		// Kubernetes waits longer and longer before it tries to start a container again. A new pod is tried at once.
		if err := r.Remove(ctx, s.owner, found.pod); err != nil {
			return err
		}
	}
	return step.WaitFor(patience, found.reason, "the control plane does not start: "+found.message)
}

// whyNotRunning looks at pods, then at events where pods do not tell. When nothing is found, there may be no configuration to start
// with: it is Flux's to make it again.
func (r *Reconciler) whyNotRunning(ctx context.Context, s *scope) (*diagnosis, error) {
	pods, err := r.controlPlanePods(ctx, s)
	if err != nil {
		return nil, err
	}
	found := diagnose(pods, s.observed.apiServer)
	switch {
	case missesVolume(found):
		return r.unprovided(ctx, s, found)
	case found != nil:
		return found, nil
	}
	if found, err = r.refusedEtcd(ctx, s); found != nil || err != nil {
		return found, err
	}
	gone, err := r.configGone(ctx, s)
	if err != nil || !gone {
		return nil, err
	}
	return nil, r.askFluxToLook(ctx, s, "Secret "+s.names.ConfigSecret()+" is gone")
}

// maxControlPlanePods bounds what is read of a host namespace, where a tenant may have thousands of pods.
const maxControlPlanePods = 100

// controlPlanePods reads live: pods are not cached, and looked at only while something is wrong. What the tenant runs has
// the PriorityClass of workloads, which the syncer sets, whatever its labels are.
func (r *Reconciler) controlPlanePods(ctx context.Context, s *scope) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	of := client.MatchingLabels{"release": s.names.HostName()}
	if err := r.Live.List(ctx, list, client.InNamespace(s.names.HostNamespace()), of, client.Limit(maxControlPlanePods)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Spec.PriorityClassName != names.ControlPlanePriorityClass
	}), nil
}
