// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func TestWhatIsUsedOfACloudSpace(t *testing.T) {
	const cpu, memory, storage = corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsStorage
	tests := map[string]struct {
		change        func(*scope)
		cpu, memory   string
		storage, pods string
	}{
		"nothing": {change: func(*scope) {}, cpu: "4 0 0 3547m", memory: "8Gi 0 0 6781Mi", storage: "20Gi 0 0 20Gi", pods: "50 0 0 47"},
		"some": {
			change: func(s *scope) {
				use(s, map[corev1.ResourceName]string{cpu: "252m", memory: "770Mi", "pods": "2"}, map[corev1.ResourceName]string{cpu: "1", memory: "1Gi", "pods": "7"})
				s.observed.quotas.total.Status.Used[storage] = resource.MustParse("5Gi")
			},
			cpu: "4 252m 1 2547m", memory: "8Gi 770Mi 1Gi 5757Mi", storage: "20Gi 2Gi 3Gi 15Gi", pods: "50 2 7 40",
		},
		"more than there should be, after it was lowered": {
			change: func(s *scope) {
				use(s, nil, map[corev1.ResourceName]string{cpu: "3600m"})
				s.observed.quotas.total.Status.Used[storage] = resource.MustParse("30Gi")
			},
			cpu: "4 0 3600m 0", memory: "8Gi 0 0 6781Mi", storage: "20Gi 2Gi 28Gi 0", pods: "50 0 0 47",
		},
		"etcd has no volume yet": {
			change: func(s *scope) { s.observed.quotas.total.Status.Used[storage] = resource.MustParse("0") },
			cpu:    "4 0 0 3547m", memory: "8Gi 0 0 6781Mi", storage: "20Gi 0 0 20Gi", pods: "50 0 0 47",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, s := resizable(t)
			tt.change(s)
			usage := usageOf(s)
			want := []string{tt.cpu, tt.memory, tt.storage, tt.pods}
			if diff := cmp.Diff(want, []string{told(usage.CPU), told(usage.Memory), told(usage.Storage), told(usage.Pods)}); diff != "" {
				t.Errorf("hard, control plane, workloads, free (-want +got):\n%s", diff)
			}
		})
	}
}

func told(u v1alpha1.ResourceUsage) string {
	return text(u.Hard) + " " + text(u.ControlPlane) + " " + text(u.Workloads) + " " + text(u.Free)
}

// What is not counted yet is not told: the status keeps what it says.
func TestUsageThatIsNotKnownStays(t *testing.T) {
	_, s := resizable(t)
	s.object.Status.Resources.CPU.Hard = resource.MustParse("7")
	s.observed.quotas.workloads.Status.Used = nil
	if usage := usageOf(s); text(usage.CPU.Hard) != "7" {
		t.Errorf("got %v, want what stood there", usage)
	}
}

// Pods come and go: the status follows in steps of half a minute, and comes to rest.
func TestTheStatusTellsUsageNowAndThen(t *testing.T) {
	usage := func(cpu string) v1alpha1.CloudSpaceUsage {
		return v1alpha1.CloudSpaceUsage{CPU: v1alpha1.ResourceUsage{Workloads: resource.MustParse(cpu)}}
	}
	ago := func(wait time.Duration) *metav1.Time {
		at := metav1.NewTime(noon.Add(-wait))
		return &at
	}
	tests := map[string]struct {
		told, used string
		when       *metav1.Time
		want       string
		wantDue    time.Duration
	}{
		"nothing changed":                             {told: "1", used: "1000m", when: ago(time.Hour), want: "1"},
		"for the first time":                          {told: "0", used: "1", want: "1"},
		"half a minute after the last time":           {told: "1", used: "2", when: ago(30 * time.Second), want: "2"},
		"sooner":                                      {told: "1", used: "2", when: ago(10 * time.Second), want: "1", wantDue: 20 * time.Second},
		"after a time that a clock ahead wrote":       {told: "1", used: "2", when: ago(-time.Hour), want: "2"},
		"back to what was told, before it was time":   {told: "1", used: "1", when: ago(time.Second), want: "1"},
		"just before it is time, by less than a tick": {told: "1", used: "2", when: ago(30*time.Second - 1), want: "1", wantDue: time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status := v1alpha1.CloudSpaceStatus{Resources: usage(tt.told), ResourcesTime: tt.when}
			tellUsage(&status, usage(tt.used), noon)
			if got := text(status.Resources.CPU.Workloads); got != tt.want {
				t.Errorf("it tells %s, want %s", got, tt.want)
			}
			if got := usageDue(status, usage(tt.used), noon); got != tt.wantDue {
				t.Errorf("it looks again after %s, want %s", got, tt.wantDue)
			}
		})
	}
}
