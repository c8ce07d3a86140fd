//go:build soak

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

const system = "kubeopera-system"

// liveAndLive gives a Tenant one life after the other, always under the same name, until the time is over.
func (s *soak) liveAndLive(ctx context.Context, id string, random *rand.Rand) {
	for time.Now().Before(s.deadline) && !s.Failed() {
		s.live(ctx, id, random)
	}
}

// live is one life: created, sometimes with what cannot be; mended; broken and recovered; deleted, sometimes before it was
// ready; gone.
func (s *soak) live(ctx context.Context, id string, random *rand.Rand) {
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}}
	broken := random.IntN(4) == 0
	if broken {
		tenant.Spec.DefaultCloudSpace.Template.Spec.KubernetesVersion = "v1.20.0"
	}
	s.try(ctx, "creating "+id, func() error { return client.IgnoreAlreadyExists(s.api.Create(ctx, tenant.DeepCopy())) })
	began := time.Now()
	switch {
	case random.IntN(5) == 0:
		s.report.count("deleted at some moment of provisioning")
		pause(ctx, time.Duration(random.IntN(45))*time.Second)
	case broken:
		s.until(ctx, id+" refused", func() (bool, string) { return s.phase(ctx, id, "Failed") })
		s.patch(ctx, tenant, `{"spec":{"defaultCloudSpace":{"template":{"spec":{"kubernetesVersion":null}}}}}`)
		s.until(ctx, id+" mended", func() (bool, string) { return s.ready(ctx, id) })
		s.report.count("refused and mended")
	default:
		s.until(ctx, id+" ready", func() (bool, string) { return s.ready(ctx, id) })
		s.report.provisioned(time.Since(began))
		for range 1 + random.IntN(3) {
			s.breakAndRecover(ctx, id, random)
		}
	}
	s.try(ctx, "deleting "+id, func() error { return client.IgnoreNotFound(s.api.Delete(ctx, tenant.DeepCopy())) })
	s.until(ctx, id+" gone", func() (bool, string) {
		err := s.api.Get(ctx, client.ObjectKey{Name: id}, tenant)
		return apierrors.IsNotFound(err), fmt.Sprint(conditionsOf(tenant.Status.Conditions), err)
	})
	s.report.count("lives")
}

// breakAndRecover does one bad thing and waits until all is well again.
func (s *soak) breakAndRecover(ctx context.Context, id string, random *rand.Rand) {
	host := "vcluster-" + id
	pods := func(app string) func() error {
		return func() error {
			return s.api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(host), client.MatchingLabels{"app": app}, client.GracePeriodSeconds(0))
		}
	}
	gone := func(object client.Object) func() error {
		return func() error { return client.IgnoreNotFound(s.api.Delete(ctx, object)) }
	}
	named := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	bad := []struct {
		name string
		do   func() error
	}{
		{"API server killed", pods("vcluster")},
		{"etcd killed", pods("vcluster-etcd")},
		{"HelmRelease deleted", gone(&helmv2.HelmRelease{ObjectMeta: named(system, id)})},
		{"kubeconfig deleted", gone(&corev1.Secret{ObjectMeta: named(system, "cloudspace-"+id+"-kubeconfig")})},
		{"Deployment of the control plane deleted", gone(&appsv1.Deployment{ObjectMeta: named(host, id)})},
		{"quota deleted", gone(&corev1.ResourceQuota{ObjectMeta: named(host, "cloudspace")})},
		{"asked to retry", func() error {
			tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}}
			return s.api.Patch(ctx, tenant, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Pending"}}`)))
		}},
		{"size changed", func() error {
			tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}}
			return s.api.Patch(ctx, tenant, client.RawPatch(types.MergePatchType,
				[]byte(`{"spec":{"defaultCloudSpace":{"template":{"spec":{"controlPlane":{"size":"Medium"},"resources":{"cpu":"4","memory":"8Gi"}}}}}}`)))
		}},
	}[random.IntN(8)]
	s.try(ctx, bad.name+" of "+id, bad.do)
	s.report.count(bad.name)
	// What was done is noticed first: only then does being ready mean anything.
	pause(ctx, 3*time.Second)
	s.until(ctx, id+" recovered from: "+bad.name, func() (bool, string) { return s.ready(ctx, id) })
}

// ready tells whether the Tenant and its CloudSpace are all that is asked for.
func (s *soak) ready(ctx context.Context, id string) (bool, string) {
	tenant, space := &v1alpha1.Tenant{}, &v1alpha1.CloudSpace{}
	if err := s.api.Get(ctx, client.ObjectKey{Name: id}, tenant); err != nil {
		return false, err.Error()
	}
	if err := s.api.Get(ctx, client.ObjectKey{Namespace: "tenant-" + id, Name: "default"}, space); err != nil {
		return false, err.Error()
	}
	ready := func(generation, observed int64, conditions []metav1.Condition) bool {
		return generation == observed && meta.IsStatusConditionTrue(conditions, "Ready")
	}
	return ready(tenant.Generation, tenant.Status.ObservedGeneration, tenant.Status.Conditions) &&
			ready(space.Generation, space.Status.ObservedGeneration, space.Status.Conditions),
		conditionsOf(tenant.Status.Conditions) + conditionsOf(space.Status.Conditions)
}

func (s *soak) phase(ctx context.Context, id, phase string) (bool, string) {
	tenant := &v1alpha1.Tenant{}
	err := s.api.Get(ctx, client.ObjectKey{Name: id}, tenant)
	return string(tenant.Status.Phase) == phase, fmt.Sprint(conditionsOf(tenant.Status.Conditions), err)
}

func (s *soak) patch(ctx context.Context, object client.Object, text string) {
	s.try(ctx, "changing "+object.GetName(), func() error {
		return s.api.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(text)))
	})
}

// try makes a call until it succeeds: the API server is killed now and then.
func (s *soak) try(ctx context.Context, what string, call func() error) {
	s.until(ctx, what, func() (bool, string) {
		err := call()
		return err == nil, fmt.Sprint(err)
	})
}

// until waits for something to come true, and fails the test with what was seen last when it does not.
func (s *soak) until(ctx context.Context, what string, done func() (bool, string)) {
	seen := ""
	err := wait.PollUntilContextTimeout(ctx, look, bound, true, func(context.Context) (ok bool, _ error) {
		ok, seen = done()
		return ok, nil
	})
	if err != nil {
		s.Errorf("%s: not within %s; last seen: %s", what, bound, seen)
	}
}

func pause(ctx context.Context, length time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(length):
	}
}

// conditionsOf are those that are not True, for a person.
func conditionsOf(conditions []metav1.Condition) string {
	var text strings.Builder
	for _, c := range conditions {
		if c.Status != metav1.ConditionTrue || c.Type == "Stalled" {
			fmt.Fprintf(&text, "%s %s %s: %s; ", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return text.String()
}
