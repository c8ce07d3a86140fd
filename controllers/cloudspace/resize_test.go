// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/step"
)

// resizable is a pass over a CloudSpace that is up, with 4 CPU and 8Gi, a Small control plane, and quotas that follow that.
func resizable(t *testing.T) (*Reconciler, *scope) {
	t.Helper()
	r := &Reconciler{Platform: testPlatform(t)}
	s := newScope(testCloudSpace("default"))
	s.object.Status.Timeline = []v1alpha1.PhaseTransition{{Phase: "Active"}}
	s.granted = v1alpha1.CloudSpaceResources{CPU: resource.MustParse("4"), Memory: resource.MustParse("8Gi"), Storage: resource.MustParse("20Gi"), Pods: 50}
	s.object.Spec.Resources = s.granted
	s.observed.controlPlane = releaseOfSize(t, r, s, "Small")
	s.observed.quotas = quotasOf(t, r, s)
	return r, s
}

func releaseOfSize(t *testing.T, r *Reconciler, s *scope, size string) *helmv2.HelmRelease {
	t.Helper()
	text, err := json.Marshal(desiredValues(s.names, s.object.Spec, r.Platform.Kubernetes[0], r.Platform.Sizes[size], r.Platform))
	if err != nil {
		t.Fatal(err)
	}
	return &helmv2.HelmRelease{Spec: helmv2.HelmReleaseSpec{Values: &apiextensionsv1.JSON{Raw: text}}}
}

// quotasOf are the quotas as a pass makes them where there are none, enforced, with nothing used.
func quotasOf(t *testing.T, r *Reconciler, s *scope) quotas {
	t.Helper()
	p, err := r.planQuotas(s)
	if err != nil {
		t.Fatal(err)
	}
	q := quotas{
		total: desiredQuota(s, sum(p.next.total, p.nextBeside)), controlPlane: desiredControlPlaneQuota(s, p.next.controlPlane),
		workloads: desiredWorkloadQuota(s, p.next.workloads),
	}
	for _, quota := range q.all() {
		quota.Status.Hard, quota.Status.Used = quota.Spec.Hard.DeepCopy(), minus(quota.Spec.Hard, quota.Spec.Hard)
	}
	return q
}

// use is what pods use now: of the control plane, and of the workloads.
func use(s *scope, controlPlane, workloads map[corev1.ResourceName]string) {
	q := s.observed.quotas
	for name, amount := range controlPlane {
		q.controlPlane.Status.Used[name] = resource.MustParse(amount)
		q.total.Status.Used[name] = resource.MustParse(amount)
	}
	for name, amount := range workloads {
		q.workloads.Status.Used[name] = resource.MustParse(amount)
		all := q.total.Status.Used[name]
		all.Add(resource.MustParse(amount))
		q.total.Status.Used[name] = all
	}
}

func TestWhatQuotasBecome(t *testing.T) {
	const memory, limits = corev1.ResourceRequestsMemory, corev1.ResourceLimitsMemory
	ask := func(amount string) func(*testing.T, *Reconciler, *scope) {
		return func(_ *testing.T, _ *Reconciler, s *scope) { s.granted.Memory = resource.MustParse(amount) }
	}
	tests := map[string]struct {
		change func(*testing.T, *Reconciler, *scope)
		// workloads and controlPlane are what they use of memory.
		workloads, controlPlane string
		// the amounts of memory: total, control plane, workloads.
		want        [3]string
		wantFollow  bool
		wantBlocked string
	}{
		"nothing changed": {workloads: "3Gi", controlPlane: "770Mi", want: [3]string{"8Gi", "1411Mi", "6781Mi"}, wantFollow: true},
		"raised":          {change: ask("10Gi"), workloads: "3Gi", want: [3]string{"10Gi", "1411Mi", "8829Mi"}, wantFollow: true},
		"lowered, and nothing is in the way": {
			change: ask("5Gi"), workloads: "3Gi", controlPlane: "770Mi", want: [3]string{"5Gi", "1411Mi", "3709Mi"},
		},
		"lowered below what workloads use": {
			change: ask("4Gi"), workloads: "3Gi", controlPlane: "770Mi", want: [3]string{"4483Mi", "1411Mi", "3Gi"},
			wantBlocked: "memory cannot be lowered to 4Gi yet: workloads use 3Gi, and 2685Mi would be left",
		},
		"lowered below what workloads use, of which more is in use than there was": {
			change: ask("4Gi"), workloads: "7Gi", want: [3]string{"8Gi", "1411Mi", "6781Mi"},
			wantBlocked: "memory cannot be lowered to 4Gi yet: workloads use 7Gi, and 2685Mi would be left",
		},
		"lowered below the least": {change: ask("1Gi"), workloads: "512Mi", want: [3]string{"8Gi", "1411Mi", "6781Mi"}},
		"lowered below what workloads request and are limited to": {
			change: func(t *testing.T, r *Reconciler, s *scope) {
				t.Helper()
				ask("4Gi")(t, r, s)
				s.observed.quotas.workloads.Status.Used[limits] = resource.MustParse("6Gi")
			},
			workloads: "3Gi", want: [3]string{"4483Mi", "1411Mi", "3Gi"},
			wantBlocked: "memory cannot be lowered to 4Gi yet: workloads use 3Gi, and 2685Mi would be left",
		},
		"raised by hand": {
			change: func(_ *testing.T, _ *Reconciler, s *scope) {
				for _, quota := range s.observed.quotas.all() {
					quota.Spec.Hard[memory] = resource.MustParse("64Gi")
				}
			},
			workloads: "3Gi", want: [3]string{"8Gi", "1411Mi", "6781Mi"},
		},
		"a larger control plane, with room for it": {
			change:    func(_ *testing.T, _ *Reconciler, s *scope) { s.object.Spec.ControlPlane.Size = "Medium" },
			workloads: "1Gi", want: [3]string{"8Gi", "2307Mi", "5885Mi"},
		},
		"a larger control plane, while workloads use its room": {
			change:    func(_ *testing.T, _ *Reconciler, s *scope) { s.object.Spec.ControlPlane.Size = "Medium" },
			workloads: "6Gi", want: [3]string{"8Gi", "2Gi", "6Gi"},
			wantBlocked: "memory cannot be lowered to 8Gi yet: workloads use 6Gi, and 5885Mi would be left",
		},
		"a smaller control plane, while the larger one runs": {
			change: func(t *testing.T, r *Reconciler, s *scope) {
				t.Helper()
				s.granted.CPU = resource.MustParse("6")
				s.observed.quotas, s.observed.controlPlane = quotas{}, releaseOfSize(t, r, s, "Medium")
				s.observed.quotas = quotasOf(t, r, s)
			},
			workloads: "5Gi", controlPlane: "1282Mi", want: [3]string{"8Gi", "2307Mi", "5885Mi"}, wantFollow: true,
		},
		"one quota is gone": {
			change:    func(_ *testing.T, _ *Reconciler, s *scope) { s.observed.quotas.controlPlane = nil },
			workloads: "3Gi", want: [3]string{"8Gi", "1411Mi", "6781Mi"},
		},
		"all quotas are gone": {
			change: func(_ *testing.T, _ *Reconciler, s *scope) { s.observed.quotas = quotas{} },
			want:   [3]string{"8Gi", "1411Mi", "6781Mi"}, wantFollow: true,
		},
		"Kubernetes has not taken up one of them": {
			change: func(_ *testing.T, _ *Reconciler, s *scope) {
				s.observed.quotas.workloads.Status.Hard[limits] = resource.MustParse("1Ti")
			},
			want: [3]string{"8Gi", "1411Mi", "6781Mi"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, s := resizable(t)
			if tt.change == nil {
				tt.change = func(*testing.T, *Reconciler, *scope) {}
			}
			tt.change(t, r, s)
			if s.observed.quotas.complete() {
				use(s, map[corev1.ResourceName]string{memory: or(tt.controlPlane, "0")}, map[corev1.ResourceName]string{memory: or(tt.workloads, "0")})
			}
			p, err := r.planQuotas(s)
			if err != nil {
				t.Fatal(err)
			}
			got := [3]string{text(p.next.total[memory]), text(p.next.controlPlane[memory]), text(p.next.workloads[memory])}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("total, control plane, workloads (-want +got):\n%s", diff)
			}
			if got := p.follow(s.observed.quotas); got != tt.wantFollow {
				t.Errorf("they follow the spec: %v, want %v", got, tt.wantFollow)
			}
			if s.observed.quotas.complete() && p.blocked(s.observed.quotas) != tt.wantBlocked {
				t.Errorf("in the way is %q, want %q", p.blocked(s.observed.quotas), tt.wantBlocked)
			}
		})
	}
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func text(quantity resource.Quantity) string { return quantity.String() }

// A new CloudSpace without room for its fixed parts gets no quota: nothing of it is made.
func TestANewCloudSpaceThatIsTooSmallIsRefused(t *testing.T) {
	r, s := resizable(t)
	s.object.Status.Timeline, s.observed = nil, observed{}
	s.granted.CPU = resource.MustParse("1")
	if _, err := r.planQuotas(s); step.Class(err) != "Wait" {
		t.Errorf("got %v, want it to wait: what it asks for would be enough", err)
	}
	s.object.Spec.Resources = s.granted
	if _, err := r.planQuotas(s); step.Class(err) != "Terminal" || !strings.Contains(err.Error(), "at least 2 CPU") {
		t.Errorf("got %v, want it refused, with the least that it needs", err)
	}
}

// Nothing is made for it, and all is when it asks for enough.
func TestNothingIsMadeForACloudSpaceThatIsTooSmall(t *testing.T) {
	c := newChaos(t)
	ask := func(cpu string) {
		object := c.object()
		object.Spec.Resources.CPU = resource.MustParse(cpu)
		object.Generation++
		if err := c.Server.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			c.pass()
		}
	}
	before := len(c.All(t))
	ask("1")
	c.expect("too little", c.says(), "Failed: ResourcesTooSmall: resources must have at least 2 CPU and 2371Mi memory for a control plane of this size")
	if after := len(c.All(t)); after != before {
		t.Errorf("%d objects were made", after-before)
	}
	ask("2")
	c.expect("enough", c.says(), "Provisioning: WaitingForQuota: waiting for the quota of the host namespace to be enforced, goes on")
}

// A control plane that runs keeps its size while its share is too small for another.
func TestAControlPlaneWaitsForRoom(t *testing.T) {
	r, s := resizable(t)
	if err := r.lacksRoom(s, r.Platform.Sizes["Small"]); err != nil {
		t.Errorf("the size that it has: %v", err)
	}
	if reason, _ := step.Explain(errOr(r.lacksRoom(s, r.Platform.Sizes["Medium"])), ""); reason != v1alpha1.ReasonResizeBlocked {
		t.Errorf("a larger one: %s, want ResizeBlocked", reason)
	}
}

// The disk of a node is divided by pods: no pod's part is another one's, whatever is lowered.
func TestTheDiskIsDividedByPods(t *testing.T) {
	const disk = corev1.ResourceLimitsEphemeralStorage
	r, s := resizable(t)
	wants := func(what, want string) {
		t.Helper()
		p, err := r.planQuotas(s)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(p.nextBeside[disk]); got != want {
			t.Errorf("%s: %s for all pods, want %s", what, got, want)
		}
	}
	wants("as the chart has it", "500Gi")
	small := r.Platform.Sizes["Small"]
	small.ControlPlane.Limits = larger(small.ControlPlane.Limits, corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("2Gi")})
	r.Platform.Sizes["Small"] = small
	wants("while the control plane has more than the platform gives", "500Gi")
	s.observed.controlPlane = releaseOfSize(t, r, s, "Small")
	wants("as the platform says", "200Gi")
	s.observed.quotas.total.Status.Used[disk] = resource.MustParse("201Gi")
	wants("while more is in use", "500Gi")
	s.observed.quotas.total.Status.Used[disk] = resource.MustParse("1Gi")
	s.granted.Pods = 20
	use(s, nil, map[corev1.ResourceName]string{corev1.ResourcePods: "27"})
	wants("while there are more pods than there should be", "120Gi")
}

// A pass with a spec that is older than the one that the quotas follow concludes nothing.
func TestAnOlderSpecRaisesNothing(t *testing.T) {
	tests := map[string]struct {
		says    string
		live    int64
		wantErr string
	}{
		"nothing is said":                         {live: 1},
		"this generation":                         {says: "1", live: 1},
		"a later one, which the cache lacks":      {says: "2", live: 2, wantErr: "Stale"},
		"a later one, which there has never been": {says: "99", live: 1},
		"no number":                               {says: "later", live: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, s := resizable(t)
			live := s.object.DeepCopy()
			live.Generation = tt.live
			f := newFleet(t, configv1alpha1.Rollout{})
			f.create(live)
			s.owner.Still = apply.Applier{Client: f.client, Live: f.client}.StillAsRead(s.object)
			if tt.says != "" {
				metav1.SetMetaDataAnnotation(&s.observed.quotas.total.ObjectMeta, "tenancy.kubeopera.io/generation", tt.says)
			}
			if got := step.Class(seesTheLatest(t.Context(), s)); got != tt.wantErr {
				t.Errorf("got %q, want %q", got, tt.wantErr)
			}
		})
	}
}

// What is new waits for its quotas; what runs works on while Kubernetes takes them up, or while something is in the way of lower ones.
func TestOnlyANewCloudSpaceWaitsForItsQuotas(t *testing.T) {
	tests := map[string]struct {
		change       func(*resizeWorld)
		wantReason   string
		wantAdvisory bool
	}{
		"a new one, before they are enforced": {
			change:     func(w *resizeWorld) { w.s.object.Status.Timeline = nil },
			wantReason: "WaitingForQuota",
		},
		"one that is resized": {
			change:     func(w *resizeWorld) { w.pass(nil); w.s.granted.CPU = resource.MustParse("5") },
			wantReason: "WaitingForQuota", wantAdvisory: true,
		},
		"one that uses too much": {
			change: func(w *resizeWorld) {
				w.pass(nil)
				w.s.granted.Memory = resource.MustParse("5Gi")
				for range 2 {
					w.pass(corev1.ResourceList{corev1.ResourceRequestsMemory: resource.MustParse("6Gi")})
				}
				w.enforced()
			},
			wantReason: "ResizeBlocked", wantAdvisory: true,
		},
		"one that is as it should be": {change: func(w *resizeWorld) { w.pass(nil); w.pass(nil); w.enforced() }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newResizeWorld(t)
			w.most = forPods(v1alpha1.CloudSpaceResources{CPU: resource.MustParse("9"), Memory: resource.MustParse("9Gi"), Pods: 99}, w.r.Platform.LimitFactors)
			tt.change(w)
			outcome := step.Run(t.Context(), w.s, []step.Step[*scope]{{Do: func(ctx context.Context, s *scope) error {
				p, err := w.r.planQuotas(s)
				if err != nil {
					return err
				}
				return w.r.ensureQuotas(ctx, s, p)
			}}})[0]
			reason := ""
			if outcome.Err != nil {
				reason, _ = step.Explain(outcome.Err, outcome.Err.Error())
			}
			if reason != tt.wantReason || outcome.Optional != tt.wantAdvisory {
				t.Errorf("got %q, advisory %v, want %q, advisory %v", reason, outcome.Optional, tt.wantReason, tt.wantAdvisory)
			}
		})
	}
}
