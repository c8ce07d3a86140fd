// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

func hard(cpu string) v1alpha1.QuotaAmounts {
	return v1alpha1.QuotaAmounts{v1alpha1.QuotaCPU: resource.MustParse(cpu)}
}

func TestWhoseTheTenantQuotaIs(t *testing.T) {
	made := func(alter ...func(*v1alpha1.TenantQuota)) *v1alpha1.TenantQuota {
		s := testScope(testTenant())
		quota, err := desiredTenantQuota(s, hard("16"))
		if err != nil {
			t.Fatal(err)
		}
		quota.Labels = s.owner.Labels()
		for _, a := range alter {
			a(quota)
		}
		return quota
	}
	tests := map[string]struct {
		quota *v1alpha1.TenantQuota
		want  bool
	}{
		"there is none": {},
		"we made it":    {quota: made()},
		"we made it, and the same amount is written otherwise": {quota: made(func(q *v1alpha1.TenantQuota) { q.Spec.Hard = hard("16000m") })},
		"an administrator changed what we made":                {quota: made(func(q *v1alpha1.TenantQuota) { q.Spec.Hard = hard("17") }), want: true},
		"an administrator took the limits away":                {quota: made(func(q *v1alpha1.TenantQuota) { q.Spec.Hard = nil }), want: true},
		"we made it, without limits": {quota: made(func(q *v1alpha1.TenantQuota) {
			unlimited, err := desiredTenantQuota(testScope(testTenant()), v1alpha1.QuotaAmounts{})
			if err != nil {
				t.Fatal(err)
			}
			q.Spec.Hard, q.Annotations = nil, unlimited.Annotations
		})},
		"an administrator made it": {
			quota: made(func(q *v1alpha1.TenantQuota) { q.Labels, q.Annotations = nil, nil }), want: true,
		},
		"it was made for an earlier Tenant of the name": {
			quota: made(func(q *v1alpha1.TenantQuota) { q.Labels[v1alpha1.LabelOwnerUID] = "uid-before" }), want: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := testScope(testTenant())
			s.observed.quota = tt.quota
			if got, err := s.hasOwnQuota(); err != nil || got != tt.want {
				t.Errorf("the administrators' own: %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

func TestHowManyCloudSpaceObjectsThereCanBe(t *testing.T) {
	allowing := func(cloudSpaces string) *v1alpha1.TenantQuota {
		return &v1alpha1.TenantQuota{Spec: v1alpha1.TenantQuotaSpec{Hard: v1alpha1.QuotaAmounts{v1alpha1.QuotaCloudSpaces: resource.MustParse(cloudSpaces)}}}
	}
	live := func(hard string, used bool) *corev1.ResourceQuota {
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(noon)}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{cloudSpaceCount: resource.MustParse(hard)}}}
		if used {
			quota.Status.Used = corev1.ResourceList{cloudSpaceCount: resource.MustParse("1")}
		}
		return quota
	}
	tests := map[string]struct {
		quota *v1alpha1.TenantQuota
		live  *corev1.ResourceQuota
		after time.Duration
		want  int64
	}{
		"as many as there may be, and some that wait": {quota: allowing("4"), want: 24},
		"none may be":                          {quota: allowing("0"), want: 20},
		"an odd number":                        {quota: allowing("3"), want: 24},
		"not limited":                          {quota: &v1alpha1.TenantQuota{}, want: 520},
		"no quota is seen":                     {want: 520},
		"Kubernetes has not counted":           {quota: allowing("4"), live: live("24", false), want: 24},
		"it still has not: the number changes": {quota: allowing("4"), live: live("24", false), after: firstNudge, want: 25},
		"and changes back":                     {quota: allowing("4"), live: live("25", false), after: 2 * firstNudge, want: 24},
		"and then ever less often":             {quota: allowing("4"), live: live("24", false), after: 15 * firstNudge, want: 24},
		"when it is twice as old":              {quota: allowing("4"), live: live("24", false), after: 16 * firstNudge, want: 25},
		"its time is in the future":            {quota: allowing("4"), live: live("24", false), after: -time.Hour, want: 24},
		"it has: the number stays as it is":    {quota: allowing("4"), live: live("25", true), after: 2 * firstNudge, want: 25},
		"the quota allows more since":          {quota: allowing("10"), live: live("25", true), want: 31},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := testScope(testTenant())
			s.observed.quota, s.observed.objectQuota = tt.quota, tt.live
			got := desiredObjectQuota(s, noon.Add(tt.after)).Spec.Hard[cloudSpaceCount]
			if got.Value() != tt.want {
				t.Errorf("got %s, want %d", got.String(), tt.want)
			}
		})
	}
}

// However no limits are written, each pass finds what it made.
func TestATenantQuotaWithoutLimitsIsWrittenOnce(t *testing.T) {
	for name, hard := range map[string]v1alpha1.QuotaAmounts{"none": nil, "an empty list of them": {}} {
		c := newChaos(t)
		c.r.Platform.TenantQuota.Hard = hard
		c.live([]byte{actPass, 0, actPass, 0, actPass, 0})
		before := &v1alpha1.TenantQuota{}
		if err := c.Server.Get(t.Context(), client.ObjectKey{Name: "alice-default"}, before); err != nil {
			t.Fatal(err)
		}
		c.live([]byte{actPass, 0, actPass, 0})
		after := &v1alpha1.TenantQuota{}
		if err := c.Server.Get(t.Context(), client.ObjectKey{Name: "alice-default"}, after); err != nil || after.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s: it was written again: %v", name, err)
		}
	}
}

// A tenant that has filled its bound cannot keep its Tenant from what an administrator allows since.
func TestTheBoundOfObjectsIsRaisedBeforeTheDefaultOneIsMade(t *testing.T) {
	s := testScope(testTenant())
	full := countedQuota(s)
	w := newWorld(t, full)
	s.observed.objectQuota = full
	s.observed.quota = &v1alpha1.TenantQuota{Spec: v1alpha1.TenantQuotaSpec{Hard: v1alpha1.QuotaAmounts{v1alpha1.QuotaCloudSpaces: resource.MustParse("50")}}}
	w.refuses = errBoom
	if err := w.reconciler().ensureCloudSpace(t.Context(), s); !errors.Is(err, errBoom) {
		t.Errorf("got %v, want the refusal itself", err)
	}
	bound := s.observed.objectQuota.Spec.Hard[cloudSpaceCount]
	if bound.Value() != 70 {
		t.Errorf("there can be %s objects, want 70", bound.String())
	}
}

// Where the template cannot be, the tenant's objects are bounded all the same.
func TestObjectsAreBoundedThoughTheDefaultOneIsRefused(t *testing.T) {
	s := testScope(testTenant())
	w := newWorld(t)
	w.refuses = apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("CloudSpace").GroupKind(), "default", nil)
	if err := w.reconciler().ensureCloudSpace(t.Context(), s); step.Class(err) != "Terminal" {
		t.Errorf("got %v, want it refused for good", err)
	}
	if s.observed.objectQuota == nil {
		t.Error("the tenant's objects are not bounded")
	}
}
