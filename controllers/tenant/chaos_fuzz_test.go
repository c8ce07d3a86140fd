// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"slices"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/conditions/conditionstest"
)

// upToReady is what others do on a day without trouble, until the Tenant is Ready; then it is deleted.
var (
	upToReady = []byte{actPass, 0, actPass, 0, actCloudSpaceSays, 1, actCloudSpaceSays, 0, actKubeconfig, 0}
	thenGone  = []byte{actDeleteTenant, 0, actPass, 0, actCloudSpaceGoes, 0, actPass, 0, actPass, 0, actPass, 0}
)

// The fuzz test below proves little when nothing ever becomes Ready, or goes.
func TestADayWithoutTroubleEndsReadyAndThenGone(t *testing.T) {
	c := newChaos(t)
	c.live(upToReady)
	if object := c.tenant(); object == nil || object.Status.Phase != v1alpha1.TenantReady || !meta.IsStatusConditionTrue(object.Status.Conditions, "Ready") {
		t.Fatalf("it is %+v", object)
	}
	c.live(thenGone)
	if object := c.tenant(); object != nil {
		t.Fatalf("it is still there: %+v", object.Status)
	}
	for _, left := range c.All(t) {
		// What is in the tenant's namespace goes with it, and the source of the kubeconfig with its CloudSpace.
		if (apply.Owner{UID: "uid-alice"}).Owns(left) && left.GetNamespace() != "tenant-alice-default" {
			t.Errorf("left is %T %s", left, left.GetName())
		}
	}
}

// Whatever befalls what belongs to a Tenant, in whatever order: no pass panics, each status that is written can be read by kstatus and
// speaks of the generation that was seen, all that is made is ours, what is somebody else's is neither altered nor deleted, and who is
// told that all is ready has the kubeconfig of the CloudSpace that stands.
func FuzzReconcile(f *testing.F) {
	day := slices.Concat(upToReady, thenGone)
	f.Add(day)
	for act := range acts {
		for at := 4; at < len(day); at += 4 {
			f.Add(slices.Concat(day[:at], []byte{byte(act), byte(act + at/2), actPass, 0}, day[at:]))
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

// ours tells what a Tenant may alter and delete: what was made for it, a namespace that an administrator made for it, and the CloudSpaces
// in that, which its members make.
func ours(o client.Object) bool {
	if (apply.Owner{UID: "uid-alice"}).Owns(o) {
		return true
	}
	switch o := o.(type) {
	case *v1alpha1.CloudSpace:
		return o.Namespace == "tenant-alice-default"
	case *corev1.Namespace:
		return madeBeforehand(o, "alice-default")
	default:
		return false
	}
}

// pass makes one pass, if the Tenant is there, and holds it to what must be so always.
func (c *chaos) pass() {
	c.t.Helper()
	object := c.tenant()
	if object == nil {
		return
	}
	stood := object.DeepCopy()
	c.Hold(c.t, func() { _, _ = c.r.Reconcile(logf.IntoContext(c.t.Context(), logr.Discard()), object) })
	if now := c.tenant(); now != nil && !equality.Semantic.DeepEqual(stood.Status, now.Status) {
		c.checkStatus(now)
	}
}

func (c *chaos) checkStatus(object *v1alpha1.Tenant) {
	c.t.Helper()
	if err := conditionstest.Check(c.t.Context(), object); err != nil {
		c.t.Fatalf("status %+v: %v", object.Status, err)
	}
	if object.Status.ObservedGeneration != object.Generation {
		c.t.Fatalf("the status speaks of generation %d, the object has %d", object.Status.ObservedGeneration, object.Generation)
	}
	if !meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.ConditionReady) {
		return
	}
	copied := &corev1.Secret{}
	key := client.ObjectKey{Namespace: "kubeopera-system", Name: "tenant-alice-default-kubeconfig"}
	if err := c.Server.Get(c.t.Context(), key, copied); err != nil || string(copied.Data["config"]) != string(c.cloudSpace().UID) {
		c.t.Fatalf("it is Ready with the kubeconfig of %q: %v", copied.Data["config"], err)
	}
}
