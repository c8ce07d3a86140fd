// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
)

// resizeWorld is the quotas of one host namespace, looked at after every write.
type resizeWorld struct {
	t *testing.T
	r *Reconciler
	s *scope
	// most is what the total may be at most.
	most corev1.ResourceList
	last quotas
}

func newResizeWorld(t *testing.T) *resizeWorld {
	t.Helper()
	r, s := resizable(t)
	s.observed.quotas = quotas{}
	w := &resizeWorld{t: t, r: r, s: s}
	written := func(object client.Object, err error) error {
		quota, ok := object.(*corev1.ResourceQuota)
		if err != nil || !ok {
			return err
		}
		*w.standing(quota.Name) = quota.DeepCopy()
		w.check("after a write of " + quota.Name)
		return nil
	}
	server := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			o.SetUID("uid")
			return written(o, c.Create(ctx, o, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return written(o, c.Update(ctx, o, options...))
		},
	}).Build()
	r.Applier = apply.Applier{Client: server, Live: server}
	return w
}

func (w *resizeWorld) standing(name string) **corev1.ResourceQuota {
	switch name {
	case controlPlaneQuotaName:
		return &w.last.controlPlane
	case workloadQuotaName:
		return &w.last.workloads
	default:
		return &w.last.total
	}
}

// check holds at every moment: nothing is negative, the shares are within the total, and that is within what was reserved.
func (w *resizeWorld) check(when string) {
	w.t.Helper()
	for _, quota := range w.last.all() {
		if quota == nil {
			continue
		}
		for name, amount := range quota.Spec.Hard {
			if parsed, err := resource.ParseQuantity(amount.String()); err != nil || parsed.Cmp(amount) != 0 {
				w.t.Fatalf("%s: %s of %s is written as %s", when, name, quota.Name, amount.String())
			}
			if amount.Sign() < 0 {
				w.t.Fatalf("%s: %s of %s is %s", when, name, quota.Name, amount.String())
			}
		}
	}
	if !w.last.complete() {
		return
	}
	total := only(w.last.total.Spec.Hard, perPods...)
	if shares := sum(w.last.controlPlane.Spec.Hard, w.last.workloads.Spec.Hard); !within(shares, total) {
		w.t.Fatalf("%s: the shares are %v of %v", when, shares, total)
	}
	if !within(total, w.most) {
		w.t.Fatalf("%s: the total is %v, and %v was reserved", when, total, w.most)
	}
}

// enforced is Kubernetes taking up the quotas.
func (w *resizeWorld) enforced() {
	for _, quota := range w.s.observed.quotas.all() {
		if quota != nil {
			quota.Status.Hard = quota.Spec.Hard.DeepCopy()
		}
	}
}

// pass is one of the operator's, after Kubernetes took up the quotas and counted what is used.
func (w *resizeWorld) pass(used corev1.ResourceList) plan {
	w.t.Helper()
	w.enforced()
	for _, quota := range w.s.observed.quotas.all() {
		if quota != nil {
			quota.Status.Used = minus(quota.Spec.Hard, quota.Spec.Hard)
		}
	}
	if w.s.observed.quotas.complete() {
		for name, amount := range used {
			w.s.observed.quotas.workloads.Status.Used[name] = amount
			w.s.observed.quotas.total.Status.Used[name] = amount
		}
	}
	p, err := w.r.planQuotas(w.s)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.r.writeQuotas(w.t.Context(), w.s, p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// Whatever a CloudSpace is resized to, while whatever is used of it: at every moment the shares are within the total and the total
// within what was reserved, nothing is negative or lost, and when the use ends, all is as asked for.
func FuzzQuotas(f *testing.F) {
	f.Add(int64(4000), int64(8<<30), int32(50), int64(2000), int64(4<<30), int32(20), int64(3000), int64(6<<30), uint8(0))
	f.Add(int64(2003), int64(3<<30+1), int32(8), int64(100_000_000), int64(1<<50), int32(10000), int64(1), int64(1), uint8(1))
	f.Add(int64(64000), int64(5_000_000_007), int32(300), int64(1), int64(1), int32(1), int64(63000), int64(1<<40), uint8(2))
	f.Fuzz(func(t *testing.T, cpu, memory int64, pods int32, thenCPU, thenMemory int64, thenPods int32, usedCPU, usedMemory int64, how uint8) {
		w := newResizeWorld(t)
		granted := func(cpu, memory int64, pods int32) v1alpha1.CloudSpaceResources {
			format := []resource.Format{resource.BinarySI, resource.DecimalSI}[how%2]
			return v1alpha1.CloudSpaceResources{
				CPU: *resource.NewMilliQuantity(upTo(cpu, 100_000_000), resource.DecimalSI), Memory: *resource.NewQuantity(upTo(memory, 1<<50), format),
				Storage: resource.MustParse("10Gi"), Pods: int32(upTo(int64(pods), 10000)),
			}
		}
		first, then := granted(cpu, memory, pods), granted(thenCPU, thenMemory, thenPods)
		w.s.granted = first
		w.most = larger(forPods(first, w.r.Platform.LimitFactors), forPods(then, w.r.Platform.LimitFactors))
		w.pass(nil)
		w.pass(nil)
		if how%3 == 2 {
			w.s.object.Spec.ControlPlane.Size = "Medium"
		}
		w.s.granted = then
		used := corev1.ResourceList{
			corev1.ResourceRequestsCPU:    *resource.NewMilliQuantity(upTo(usedCPU, 100_000_000), resource.DecimalSI),
			corev1.ResourceRequestsMemory: *resource.NewQuantity(upTo(usedMemory, 1<<50), resource.BinarySI),
		}
		for range 3 {
			p := w.pass(used)
			if within(used, p.target.workloads) && !p.refused && !equality.Semantic.DeepEqual(p.next.workloads, p.target.workloads) {
				t.Fatalf("nothing is in the way, and workloads have %v, want %v", p.next.workloads, p.target.workloads)
			}
		}
		w.pass(nil)
		p := w.pass(nil)
		if p.refused {
			return
		}
		if !p.follow(w.s.observed.quotas) && w.last.total.Annotations[v1alpha1.AnnotationGeneration] == "" {
			t.Fatal("they never follow the spec")
		}
		if total := forPods(then, w.r.Platform.LimitFactors); !equality.Semantic.DeepEqual(sum(p.next.controlPlane, p.next.workloads), total) {
			t.Fatalf("the shares are %v and %v of %v", p.next.controlPlane, p.next.workloads, total)
		}
	})
}

func upTo(number, most int64) int64 {
	if number < 0 {
		number = -(number + 1)
	}
	return number%most + 1
}
