// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"bytes"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// says is the phase of the CloudSpace, and what Ready says of it.
func (c *chaos) says() string {
	c.t.Helper()
	status := c.object().Status
	ready := meta.FindStatusCondition(status.Conditions, "Ready")
	goesOn := ""
	if meta.IsStatusConditionTrue(status.Conditions, "Reconciling") {
		goesOn = ", goes on"
	}
	return string(status.Phase) + ": " + ready.Reason + ": " + ready.Message + goesOn
}

func (c *chaos) suspend(suspend bool) {
	c.t.Helper()
	object := c.object()
	object.Spec.Suspend = suspend
	object.Generation++
	if err := c.Server.Update(c.t.Context(), object); err != nil {
		c.t.Fatal(err)
	}
}

// workloads are pods of the tenant: so many run, and so many are counted.
func (c *chaos) workloads(pods, counted string) {
	c.t.Helper()
	if pods != "0" {
		if err := c.Server.Create(c.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "vcluster-alice-default", Name: "app"}}); err != nil {
			c.t.Fatal(err)
		}
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "vcluster-alice-default", Name: workloadQuotaName}}
	if err := c.Server.Get(c.t.Context(), client.ObjectKeyFromObject(quota), quota); err != nil {
		c.t.Fatal(err)
	}
	quota.Status.Used[corev1.ResourcePods] = resource.MustParse(counted)
	if err := c.Server.Status().Update(c.t.Context(), quota); err != nil {
		c.t.Fatal(err)
	}
}

func (c *chaos) pods() int {
	c.t.Helper()
	list := &corev1.PodList{}
	if err := c.Server.List(c.t.Context(), list); err != nil {
		c.t.Fatal(err)
	}
	return len(list.Items)
}

func (c *chaos) expect(what, got, want string) {
	c.t.Helper()
	if got != want {
		c.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// The way to rest and back: Flux lets go of what is inside, the control plane ends, then the workloads; the other way round all comes back
// as it was, with no turn of a rollout, while others have theirs.
func TestACloudSpaceIsSuspendedAndResumed(t *testing.T) {
	c := newChaos(t)
	c.live(upToActive)
	before := c.release(0).DeepCopy()
	c.r.Rollout.Limits.MaxConcurrent = 0
	c.workloads("1", "1")
	c.suspend(true)

	c.pass()
	c.expect("at first", c.says(), "Active: CloudSpaceSuspended: being suspended: waiting for the API server of the control plane to end, goes on")
	if names := newScope(c.object()).names; !c.release(1).Spec.Suspend || !suspended(c.release(0), names) {
		t.Errorf("Flux holds on to what is inside: %v, the control plane has no members: %v", !c.release(1).Spec.Suspend, suspended(c.release(0), names))
	}
	if c.release(0).Spec.Values == nil || !bytes.Equal(c.release(0).Spec.Values.Raw, before.Spec.Values.Raw) {
		t.Error("the values of the control plane changed: its pods would be others when it is resumed")
	}
	if c.pods() != 1 {
		t.Error("a workload was ended while the control plane could make it anew")
	}
	c.runWorkloads(0)
	c.pass()
	c.expect("while workloads run", c.says(), "Active: CloudSpaceSuspended: being suspended: waiting for 1 pods of the workloads to end, goes on")
	if c.pods() != 0 {
		t.Error("the workloads were not ended")
	}
	c.workloads("1", "1")
	c.pass()
	if c.pods() != 1 {
		t.Error("pods were asked to end again at once")
	}
	c.clock.SetTime(c.clock.Now().Add(podsPause))
	past := c.object()
	past.Finalizers = append(past.Finalizers, "example.com/of-the-past")
	if _, err := c.r.Reconcile(t.Context(), past); err != nil || c.pods() != 1 {
		t.Errorf("pods were ended going by what is not so any more: %d are left, %v", c.pods(), err)
	}
	c.clock.SetTime(c.clock.Now().Add(podsPause))
	c.pass()
	if c.pods() != 0 {
		t.Error("pods that came later were not ended")
	}
	c.workloads("0", "0")
	c.pass()
	c.expect("at rest", c.says(), "Suspended: CloudSpaceSuspended: suspended: neither control plane nor workloads run")

	c.clock.SetTime(c.clock.Now().Add(30 * 24 * time.Hour))
	c.pass()
	c.expect("a month later", c.says(), "Suspended: CloudSpaceSuspended: suspended: neither control plane nor workloads run")

	c.suspend(false)
	c.pass()
	c.expect("resumed", c.says(), "Active: Degraded: waiting for etcd of the control plane, goes on")
	if got := c.release(0); Revision(got) != Revision(before) || writtenRevision(got) != Revision(before) || turnOf(got).cause != "" {
		t.Errorf("the control plane is not what it was, or has a turn: %+v", got.Spec)
	}
	c.fluxIsDone(0)
	c.runWorkloads(0)
	c.pass()
	c.fluxIsDone(1)
	c.pass()
	c.expect("at last", c.says(), "Active: Provisioned: ")
	if c.release(1).Spec.Suspend {
		t.Error("Flux was not told to go on with what is inside")
	}
}

// One that is suspended takes what the platform changed when it is resumed, with no turn of its own.
func TestASuspendedOneChangesWhenItIsResumed(t *testing.T) {
	c := newChaos(t)
	c.live(upToActive)
	c.r.Rollout.Limits.MaxConcurrent = 0
	c.suspend(true)
	for range 2 {
		c.pass()
		c.fluxIsDone(0)
		c.runWorkloads(0)
	}
	c.r.Platform.Images.Registry = "mirror.example.com"
	c.pass()
	c.expect("at rest", c.says(), "Suspended: CloudSpaceSuspended: suspended: neither control plane nor workloads run")
	held := Revision(c.release(0))
	c.suspend(false)
	c.pass()
	if got := c.release(0); Revision(got) == held || turnOf(got).cause != "" {
		t.Errorf("it is what it was, or has a turn %+v", turnOf(got))
	}
}

// A CloudSpace that is suspended from the start gets all but a control plane; it gets that when it is resumed.
func TestACloudSpaceThatIsMadeSuspended(t *testing.T) {
	c := newChaos(t)
	c.suspend(true)
	c.live([]byte{actPass, 0, actPass, 0, actQuotaEnforced, 0})
	c.expect("at rest", c.says(), "Suspended: CloudSpaceSuspended: suspended before a control plane was made")
	if c.release(0) != nil {
		t.Error("a control plane was made")
	}
	c.suspend(false)
	c.pass()
	c.expect("resumed", c.says(), "Provisioning: Installing: installing the control plane, goes on")
	if got := c.release(0); got == nil || suspended(got, newScope(c.object()).names) {
		t.Errorf("the control plane is %+v", got)
	}
}

// What is suspended is told from what is not, whatever else is done to the release.
func TestAReleaseWithoutMembers(t *testing.T) {
	r, s := resizable(t)
	release, err := desiredControlPlane(s, r.Platform, Values{})
	if err != nil {
		t.Fatal(err)
	}
	without, err := withMembers(release, s.names, false)
	if err != nil || !suspended(without, s.names) || suspended(release, s.names) || Revision(without) == Revision(release) {
		t.Fatalf("without members: %+v, %v", without, err)
	}
	if again, err := withMembers(without, s.names, false); err != nil || again != without {
		t.Errorf("without members twice: %+v, %v", again, err)
	}
	if with, err := withMembers(without, s.names, true); err != nil || Revision(with) != Revision(release) {
		t.Errorf("with members again: %+v, %v", with, err)
	}
	if _, err := withMembers(&helmv2.HelmRelease{}, s.names, false); err == nil {
		t.Error("a release that is not of the operator's making is scaled")
	}
	var none *helmv2.HelmRelease
	if suspended(none, s.names) {
		t.Error("none is suspended")
	}
}
