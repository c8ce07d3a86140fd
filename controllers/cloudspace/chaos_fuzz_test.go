// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/conditions/conditionstest"
)

// upAndGone is what others do on a day without trouble: all that a CloudSpace waits for comes, then it is deleted.
var upAndGone = []byte{
	actPass, 0, actPass, 0, actQuotaEnforced, 0, actFluxDone, 0, actWorkloads, 0, actKubeconfig, 0, actFluxDone, 1,
	actDeleteOwner, 0, actPass, 0, actPass, 0, actPass, 0, actPass, 0, actPass, 0,
}

// upToActive is the part of it before the deletion.
var upToActive = upAndGone[:len(upAndGone)-12]

// The fuzz test below proves little when nothing ever becomes Active, or goes.
func TestADayWithoutTroubleEndsActiveAndThenGone(t *testing.T) {
	c := newChaos(t)
	c.live(upToActive)
	if object := c.object(); object == nil || object.Status.Phase != v1alpha1.CloudSpaceActive || !meta.IsStatusConditionTrue(object.Status.Conditions, "Ready") {
		t.Fatalf("it is %+v", object)
	}
	c.live(upAndGone[len(upToActive):])
	if object := c.object(); object != nil {
		t.Fatalf("it is still there: %+v", object.Status)
	}
	for _, left := range c.All(t) {
		// What is in the host namespace goes with it.
		if (apply.Owner{UID: "uid-1"}).Owns(left) && left.GetNamespace() != "vcluster-alice-default" {
			t.Errorf("left is %T %s", left, left.GetName())
		}
	}
}

// Whatever befalls what belongs to a CloudSpace, in whatever order: no pass panics, each status that is written can be read by kstatus
// and speaks of the generation that was seen, all that is made is ours, and what is somebody else's is neither altered nor deleted.
func FuzzReconcile(f *testing.F) {
	f.Add(upAndGone)
	for act := range acts {
		for at := 4; at < len(upAndGone); at += 8 {
			f.Add(slices.Concat(upAndGone[:at], []byte{byte(act), byte(act + at/2), actPass, 0}, upAndGone[at:]))
		}
	}
	f.Fuzz(func(t *testing.T, day []byte) {
		if len(day) > 200 {
			return
		}
		newChaos(t).live(day)
	})
}

// live does to the world what a day says, two bytes for each act, with a pass after each.
func (c *chaos) live(day []byte) {
	c.t.Helper()
	for i := 0; i+1 < len(day); i += 2 {
		acts[int(day[i])%len(acts)](c, int(day[i+1]))
		c.pass()
	}
}

// ours tells what was made for the CloudSpace, or for all.
func ours(o client.Object) bool { return (apply.Owner{UID: "uid-1"}).Owns(o) || apply.Platform.Owns(o) }

// pass makes one pass, if the CloudSpace is there, and holds it to what must be so always.
func (c *chaos) pass() {
	c.t.Helper()
	object := c.object()
	if object == nil {
		return
	}
	stood := object.DeepCopy()
	c.Hold(c.t, func() { _, _ = c.r.Reconcile(logf.IntoContext(c.t.Context(), logr.Discard()), object) })
	if now := c.object(); now != nil && !equality.Semantic.DeepEqual(stood.Status, now.Status) {
		c.checkStatus(now)
	}
}

func (c *chaos) checkStatus(object *v1alpha1.CloudSpace) {
	c.t.Helper()
	if err := conditionstest.Check(c.t.Context(), object); err != nil {
		c.t.Fatalf("status %+v: %v", object.Status, err)
	}
	if object.Status.ObservedGeneration != object.Generation {
		c.t.Fatalf("the status speaks of generation %d, the object has %d", object.Status.ObservedGeneration, object.Generation)
	}
}

// object is the CloudSpace as it stands, or nil.
func (c *chaos) object() *v1alpha1.CloudSpace {
	c.t.Helper()
	object := testCloudSpace("default")
	err := c.Server.Get(c.t.Context(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return object
}

func condition(kind string, status metav1.ConditionStatus, reason string, generation int64) metav1.Condition {
	return metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: reason, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(noon),
	}
}
