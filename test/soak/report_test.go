//go:build soak

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// report is what a run did and measured.
type report struct {
	mu        sync.Mutex
	counts    map[string]int
	durations []time.Duration
	memory    []sample
}

// sample is the memory of the operator's container at a time, in bytes of its working set.
type sample struct {
	at    time.Time
	bytes uint64
}

func (r *report) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]int{}
	}
	r.counts[what]++
}

func (r *report) provisioned(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.durations = append(r.durations, took)
}

// String is a table for docs/performance.md.
func (r *report) String() string {
	var text strings.Builder
	text.WriteString("\n| what | figure |\n|---|---|\n")
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Fprintf(&text, "| %s | %d |\n", what, r.counts[what])
	}
	slices.Sort(r.durations)
	if n := len(r.durations); n > 0 {
		fmt.Fprintf(&text, "| Tenant to Ready, median and longest | %s, %s |\n", r.durations[n/2].Round(time.Second), r.durations[n-1].Round(time.Second))
	}
	for i, quarter := range r.quarters() {
		fmt.Fprintf(&text, "| memory of the operator, most in quarter %d | %d MiB |\n", i+1, quarter>>20)
	}
	return text.String()
}

// quarters are the most that the operator used in each quarter of the run.
func (r *report) quarters() (most [4]uint64) {
	if len(r.memory) == 0 {
		return most
	}
	first, whole := r.memory[0].at, r.memory[len(r.memory)-1].at.Sub(r.memory[0].at)
	for _, m := range r.memory {
		i := min(3, int(4*m.at.Sub(first)/max(1, whole)))
		most[i] = max(most[i], m.bytes)
	}
	return most
}

// memoryIsFlat compares the last quarter with the second, when everything was warm.
func (r *report) memoryIsFlat(t *testing.T) {
	t.Helper()
	most := r.quarters()
	if most[1] == 0 || most[3] == 0 {
		t.Error("the memory of the operator was not measured")
	}
	if most[3] > most[1]*5/4+16<<20 {
		t.Errorf("the operator used %d MiB in the last quarter and %d MiB in the second", most[3]>>20, most[1]>>20)
	}
}

// measureMemory asks the kubelet for the operator's memory every ten seconds.
func (s *soak) measureMemory(ctx context.Context) {
	for ctx.Err() == nil {
		if bytes := s.operatorMemory(ctx); bytes > 0 {
			s.report.mu.Lock()
			s.report.memory = append(s.report.memory, sample{time.Now(), bytes})
			s.report.mu.Unlock()
		}
		pause(ctx, 10*time.Second)
	}
}

// operatorMemory is zero when nobody can tell, as while the API server or the operator is down.
func (s *soak) operatorMemory(ctx context.Context) (most uint64) {
	nodes, err := s.typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0
	}
	for i := range nodes.Items {
		text, err := s.typed.CoreV1().RESTClient().Get().Resource("nodes").Name(nodes.Items[i].Name).SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
		var summary struct {
			Pods []struct {
				PodRef struct{ Name, Namespace string }
				Memory struct{ WorkingSetBytes uint64 }
			}
		}
		if err != nil || json.Unmarshal(text, &summary) != nil {
			return 0
		}
		for _, pod := range summary.Pods {
			if pod.PodRef.Namespace == system && strings.HasPrefix(pod.PodRef.Name, "tenant-controller-") {
				most = max(most, pod.Memory.WorkingSetBytes)
			}
		}
	}
	return most
}

// nothingIsLeft looks for anything that carries the name of one of the Tenants.
func (s *soak) nothingIsLeft() {
	for _, list := range []client.ObjectList{
		&v1alpha1.TenantList{}, &v1alpha1.CloudSpaceList{}, &corev1.NamespaceList{}, &corev1.PersistentVolumeList{}, &corev1.SecretList{}, &corev1.PodList{},
		&helmv2.HelmReleaseList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		s.until(s.Context(), fmt.Sprintf("nothing left in %T", list), func() (bool, string) {
			if err := s.api.List(s.Context(), list); err != nil {
				return false, err.Error()
			}
			left := leftIn(list)
			return len(left) == 0, strings.Join(left, ", ")
		})
	}
}

func leftIn(list client.ObjectList) (left []string) {
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object)
		name := object.GetNamespace() + "/" + object.GetName()
		if volume, ok := item.(*corev1.PersistentVolume); ok && volume.Spec.ClaimRef != nil {
			name = volume.Spec.ClaimRef.Namespace
		}
		if strings.Contains(name, "soak-") {
			left = append(left, name)
		}
		return nil
	})
	return left
}
