// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func runningAPIServer(alter ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1)},
		Status: appsv1.DeploymentStatus{
			ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		},
	}
	for _, a := range alter {
		a(d)
	}
	return d
}

func runningEtcd(alter ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1)},
		Status:     appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1},
	}
	for _, a := range alter {
		a(s)
	}
	return s
}

func TestTheControlPlaneRunsWhenBothPartsDo(t *testing.T) {
	const (
		waitsForEtcd = "etcd of the control plane"
		waitsForAPI  = "the API server of the control plane"
	)
	ofRevision := func(revision string) map[string]string { return map[string]string{annotationRevision: revision} }
	release := &helmv2.HelmRelease{Spec: helmv2.HelmReleaseSpec{CommonMetadata: &helmv2.CommonMetadata{Annotations: ofRevision("2")}}}
	tests := map[string]struct {
		release   *helmv2.HelmRelease
		etcd      *appsv1.StatefulSet
		apiServer *appsv1.Deployment
		want      string
	}{
		"both run": {etcd: runningEtcd(), apiServer: runningAPIServer()},
		"replicas that are not said are one": {
			etcd:      runningEtcd(func(s *appsv1.StatefulSet) { s.Spec.Replicas = nil }),
			apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Spec.Replicas = nil }),
		},
		"both run as the release makes them": {
			release:   release,
			etcd:      runningEtcd(func(s *appsv1.StatefulSet) { s.Annotations = ofRevision("2") }),
			apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Annotations = ofRevision("2") }),
		},
		"the cache shows etcd as an earlier release made it": {
			release:   release,
			etcd:      runningEtcd(func(s *appsv1.StatefulSet) { s.Annotations = ofRevision("1") }),
			apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Annotations = ofRevision("2") }), want: waitsForEtcd,
		},
		"the cache shows the API server as an earlier release made it": {
			release:   release,
			etcd:      runningEtcd(func(s *appsv1.StatefulSet) { s.Annotations = ofRevision("2") }),
			apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Annotations = ofRevision("1") }), want: waitsForAPI,
		},
		"no etcd":                                {apiServer: runningAPIServer(), want: waitsForEtcd},
		"no API server":                          {etcd: runningEtcd(), want: waitsForAPI},
		"neither":                                {want: waitsForEtcd},
		"etcd is not ready":                      {etcd: runningEtcd(func(s *appsv1.StatefulSet) { s.Status.ReadyReplicas = 0 }), apiServer: runningAPIServer(), want: waitsForEtcd},
		"etcd is of an earlier revision":         {etcd: runningEtcd(func(s *appsv1.StatefulSet) { s.Status.UpdatedReplicas = 0 }), apiServer: runningAPIServer(), want: waitsForEtcd},
		"etcd was changed just now":              {etcd: runningEtcd(func(s *appsv1.StatefulSet) { s.Generation = 3 }), apiServer: runningAPIServer(), want: waitsForEtcd},
		"the API server was changed just now":    {etcd: runningEtcd(), apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Generation = 3 }), want: waitsForAPI},
		"an old pod of the API server is left":   {etcd: runningEtcd(), apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Status.Replicas = 2 }), want: waitsForAPI},
		"the new pod is not available":           {etcd: runningEtcd(), apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), want: waitsForAPI},
		"the only pod is of an earlier revision": {etcd: runningEtcd(), apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), want: waitsForAPI},
		"the API server is not Available":        {etcd: runningEtcd(), apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Status.Conditions[0].Status = corev1.ConditionFalse }), want: waitsForAPI},
		"nobody has said that it is":             {etcd: runningEtcd(), apiServer: runningAPIServer(func(d *appsv1.Deployment) { d.Status.Conditions = nil }), want: waitsForAPI},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (observed{controlPlane: tt.release, etcd: tt.etcd, apiServer: tt.apiServer}).notRunning(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
