// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

func highlyAvailable(c *v1alpha1.CloudSpace) { c.Spec.ControlPlane.HighAvailability = true }

// twoAPIServers run, of which so many are available.
func twoAPIServers(available int32, alter ...func(*appsv1.Deployment)) *appsv1.Deployment {
	return runningAPIServer(append([]func(*appsv1.Deployment){func(d *appsv1.Deployment) {
		d.Spec.Replicas = ptr.To[int32](2)
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.ReadyReplicas, d.Status.AvailableReplicas = 2, 2, available, available
	}}, alter...)...)
}

// threeMembers are there, of which so many are ready.
func threeMembers(ready int32, alter ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	return runningEtcd(append([]func(*appsv1.StatefulSet){func(s *appsv1.StatefulSet) {
		s.Spec.Replicas = ptr.To[int32](3)
		s.Status.Replicas, s.Status.UpdatedReplicas, s.Status.ReadyReplicas = 3, 3, ready
		s.Status.CurrentRevision, s.Status.UpdateRevision = "a", "a"
	}}, alter...)...)
}

func TestAControlPlaneGoesOnWithoutSomeMembers(t *testing.T) {
	tests := map[string]struct {
		apiServer *appsv1.Deployment
		etcd      *appsv1.StatefulSet
		// whole says that nothing is lost, serves that it goes on.
		whole, serves bool
		tells         string
	}{
		"all run":                             {apiServer: twoAPIServers(2), etcd: threeMembers(3), whole: true, serves: true},
		"an API server is lost":               {apiServer: twoAPIServers(1), etcd: threeMembers(3), serves: true, tells: "1 of 2 API servers and 3 of 3 members of etcd run"},
		"a member of etcd is lost":            {apiServer: twoAPIServers(2), etcd: threeMembers(2), serves: true, tells: "2 of 2 API servers and 2 of 3 members of etcd run"},
		"one of each is lost":                 {apiServer: twoAPIServers(1), etcd: threeMembers(2), serves: true, tells: "1 of 2 API servers and 2 of 3 members of etcd run"},
		"both API servers are lost":           {apiServer: twoAPIServers(0), etcd: threeMembers(3)},
		"etcd has no quorum":                  {apiServer: twoAPIServers(2), etcd: threeMembers(1)},
		"a pod of each is being made":         {apiServer: twoAPIServers(1, func(d *appsv1.Deployment) { d.Status.Replicas, d.Status.UpdatedReplicas = 1, 1 }), etcd: threeMembers(2, func(s *appsv1.StatefulSet) { s.Status.Replicas, s.Status.UpdatedReplicas = 2, 2 }), serves: true, tells: "1 of 2 API servers and 2 of 3 members of etcd run"},
		"the API servers are being replaced":  {apiServer: twoAPIServers(2, func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }), etcd: threeMembers(3)},
		"the API servers were changed":        {apiServer: twoAPIServers(2, func(d *appsv1.Deployment) { d.Generation++ }), etcd: threeMembers(3)},
		"etcd is being replaced":              {apiServer: twoAPIServers(2), etcd: threeMembers(2, func(s *appsv1.StatefulSet) { s.Status.UpdateRevision, s.Status.UpdatedReplicas = "b", 1 })},
		"etcd was changed":                    {apiServer: twoAPIServers(2), etcd: threeMembers(3, func(s *appsv1.StatefulSet) { s.Generation++ })},
		"etcd is gone":                        {apiServer: twoAPIServers(2)},
		"the API servers are gone":            {etcd: threeMembers(3)},
		"the only API server, which is whole": {apiServer: runningAPIServer(), etcd: runningEtcd(), whole: true},
		"the only API server, which is lost":  {apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), etcd: runningEtcd()},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := grantedScope(testCloudSpace("default", highlyAvailable))
			s.observed.apiServer, s.observed.etcd = tt.apiServer, tt.etcd
			if got := s.observed.servesOn(); got != tt.serves {
				t.Errorf("serves: %v, want %v", got, tt.serves)
			}
			world := podWorld{}
			if err := world.reconciler().controlPlaneRuns(t.Context(), s); (err == nil) != tt.whole {
				t.Errorf("before it was active once: %v", err)
			}
			s.object.Status.Timeline = []v1alpha1.PhaseTransition{{Phase: "Active", Time: metav1.NewTime(noon)}}
			if err := world.reconciler().controlPlaneRuns(t.Context(), s); (err == nil) != (tt.whole || tt.serves) {
				t.Errorf("after it was active once: %v", err)
			}
			status := newStatus(s, []step.Outcome{{Proves: "ControlPlaneReady", Attempted: true}}, noon.Add(time.Minute))
			proven, ready := meta.FindStatusCondition(status.Conditions, "ControlPlaneReady"), meta.FindStatusCondition(status.Conditions, "Ready")
			wantReason := "Succeeded"
			if tt.tells != "" {
				wantReason = "RedundancyLost"
			}
			if proven.Status != "True" || proven.Reason != wantReason || proven.Message != tt.tells || ready.Status != "True" {
				t.Errorf("it says %s %s %q, Ready %s; want %s %q", proven.Status, proven.Reason, proven.Message, ready.Status, wantReason, tt.tells)
			}
		})
	}
}

// What is not proven is not said to go on.
func TestAControlPlaneThatIsNotProvenTellsWhy(t *testing.T) {
	s := grantedScope(testCloudSpace("default", highlyAvailable))
	s.observed.apiServer, s.observed.etcd = twoAPIServers(1), threeMembers(3)
	failed := step.Outcome{Proves: "ControlPlaneReady", Attempted: true, Err: step.Wait("Installing", "installing the control plane")}
	status := newStatus(s, []step.Outcome{failed}, noon)
	if got := meta.FindStatusCondition(status.Conditions, "ControlPlaneReady"); got.Reason != "Installing" {
		t.Errorf("it says %s %q", got.Reason, got.Message)
	}
}

func TestTheDisruptionBudgetOfEtcd(t *testing.T) {
	text, err := yaml.Marshal(desiredEtcdBudget(grantedScope(testCloudSpace("staging", highlyAvailable))))
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "etcdbudget.golden.yaml", text)
}
