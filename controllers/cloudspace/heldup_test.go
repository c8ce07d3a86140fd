// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWhatHoldsUpADeletionIsSaid(t *testing.T) {
	held := func(alter ...func(*helmv2.HelmRelease)) *helmv2.HelmRelease {
		r := release(alter...)
		r.Finalizers = append(r.Finalizers, "finalizers.fluxcd.io")
		return r
	}
	namespace := func(conditions ...corev1.NamespaceCondition) *corev1.Namespace {
		return &corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: conditions}}
	}
	remaining := corev1.NamespaceCondition{
		Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue,
		Message: "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
	}
	tests := map[string]struct {
		object client.Object
		// since is how long it is being deleted; zero means that it is not.
		since time.Duration
		want  string
	}{
		"a release that is not being deleted yet": {object: held(), want: "waiting for it"},
		"a release, at first":                     {object: held(), since: 30 * time.Second, want: "waiting for it"},
		"a release that Flux does not look at": {
			object: held(), since: 31 * time.Second, want: "waiting for it: Flux's helm-controller has not uninstalled it, and does not say why: does it run?",
		},
		"a release that Flux cannot uninstall": {
			object: held(with(says("Ready", "False", "UninstallFailed", "timed out"))), since: time.Second, want: "waiting for it: Flux cannot uninstall it: timed out",
		},
		"a release that failed before": {object: held(with(says("Ready", "False", "InstallFailed", "no"))), since: time.Second, want: "waiting for it"},
		"a release that somebody else holds": {
			object: release(func(r *helmv2.HelmRelease) { r.Finalizers = []string{"example.com/hold"} }), since: time.Second,
			want: "waiting for it: held by finalizer example.com/hold",
		},
		"a namespace, at first":      {object: namespace(remaining), since: 30 * time.Second, want: "waiting for it"},
		"a namespace with a holdout": {object: namespace(remaining), since: 31 * time.Second, want: "waiting for it: " + remaining.Message},
		"a namespace that is slow":   {object: namespace(), since: time.Hour, want: "waiting for it"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.since > 0 {
				tt.object.SetDeletionTimestamp(&metav1.Time{Time: noon.Add(-tt.since)})
			}
			if got := waitsFor("it", tt.object, noon); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}
