// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/apply/applytest"
)

// chaos is a host cluster in which anything can befall what belongs to one Tenant.
type chaos struct {
	applytest.World
	t     *testing.T
	r     *Reconciler
	clock *clocktesting.FakePassiveClock
}

var chaosScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return scheme
})

func newChaos(t *testing.T) *chaos {
	t.Helper()
	c := &chaos{t: t, clock: clocktesting.NewFakePassiveClock(noon)}
	c.Kinds = []client.ObjectList{&corev1.NamespaceList{}, &rbacv1.RoleBindingList{}, &corev1.SecretList{}, &v1alpha1.CloudSpaceList{}}
	c.Ours, c.Made = ours, hold
	c.Server = fake.NewClientBuilder().WithScheme(chaosScheme()).WithObjects(testTenant()).
		WithStatusSubresource(&v1alpha1.Tenant{}, &v1alpha1.CloudSpace{}).WithInterceptorFuncs(c.Funcs()).Build()
	platform := &configv1alpha1.PlatformConfig{}
	platform.Backoff.Base.Duration, platform.Backoff.Max.Duration = 5*time.Second, 5*time.Minute
	c.r = &Reconciler{Applier: apply.Applier{Client: c.Server, Live: c.Server}, Platform: platform, Recorder: &events.FakeRecorder{}, Clock: c.clock}
	return c
}

// hold puts on a CloudSpace what its own reconciler would.
func hold(o client.Object) {
	if _, ok := o.(*v1alpha1.CloudSpace); ok {
		o.SetGeneration(1)
		o.SetFinalizers([]string{v1alpha1.FinalizerCloudSpace})
	}
}

// Acts of the days that are lived in tests; others have no name.
const (
	actPass = iota
	actCloudSpaceSays
	actKubeconfig
	actCloudSpaceGoes
	actDeleteTenant
)

// acts are what can befall; the number chooses among what it can befall, or how.
var acts = []func(c *chaos, which int){
	actPass:           func(*chaos, int) {},
	actCloudSpaceSays: (*chaos).cloudSpaceSays,
	actKubeconfig:     (*chaos).writeKubeconfig,
	actCloudSpaceGoes: (*chaos).cloudSpaceGoes,
	actDeleteTenant: func(c *chaos, _ int) {
		c.Others(func() error { return c.Server.Delete(c.t.Context(), testTenant()) })
	},
	func(c *chaos, which int) { c.Befall(c.t, which, func(o client.Object) { o.SetLabels(nil) }) },
	func(c *chaos, which int) {
		c.Befall(c.t, which, func(o client.Object) {
			o.SetLabels(map[string]string{v1alpha1.LabelOwnerUID: "somebody", v1alpha1.LabelTenant: "mallory"})
		})
	},
	func(c *chaos, which int) {
		c.Befall(c.t, which, func(o client.Object) { o.SetLabels(map[string]string{v1alpha1.LabelTenant: "alice-default"}) })
	},
	func(c *chaos, which int) {
		c.Befall(c.t, which, func(o client.Object) { o.SetFinalizers([]string{"example.com/hold"}) })
		c.Remove(c.t, which)
	},
	func(c *chaos, which int) { c.Remove(c.t, which) },
	func(c *chaos, which int) {
		c.Befall(c.t, which, func(o client.Object) { o.SetGeneration(o.GetGeneration() + 1) })
	},
	func(c *chaos, which int) { c.clock.SetTime(c.clock.Now().Add(time.Duration(which) * 10 * time.Second)) },
	func(c *chaos, which int) { c.clock.SetTime(c.clock.Now().Add(time.Hour * time.Duration(which%3-1))) },
	(*chaos).changeSpec,
	func(c *chaos, which int) { c.RefuseNext(which) },
	(*chaos).othersMake,
}

// cloudSpace is the default one as it stands, or nil.
func (c *chaos) cloudSpace() *v1alpha1.CloudSpace {
	object := &v1alpha1.CloudSpace{}
	if c.Server.Get(c.t.Context(), client.ObjectKey{Namespace: "tenant-alice-default", Name: "default"}, object) != nil {
		return nil
	}
	return object
}

// cloudSpaceSays is the default CloudSpace getting on, or not.
func (c *chaos) cloudSpaceSays(which int) {
	object := c.cloudSpace()
	if object == nil {
		return
	}
	states := []*v1alpha1.CloudSpace{
		following("Active", says("Ready", "True", "Provisioned", "")),
		following("Provisioning", says("Ready", "False", "Installing", "installing the control plane"), says("Reconciling", "True", "Progressing", "x")),
		following("Failed", says("Ready", "False", "InstallFailed", "x"), says("Stalled", "True", "InstallFailed", string([]byte{0xff}))),
		following("Active", says("Ready", "False", "Degraded", "waiting for etcd"), says("Reconciling", "True", "Progressing", "x")),
		following("Deleting", says("Ready", "False", "Deleting", "deleting"), says("Reconciling", "True", "Deleting", "deleting")),
		following(""),
	}
	object.Status = states[which%len(states)].Status
	object.Status.ObservedGeneration = object.Generation - int64(which/len(states)%2)
	object.Status.Kubeconfig.Secret = []string{"cloudspace-alice-default-kubeconfig", ""}[which/len(states)%2]
	object.Status.Retry.Attempts = int32(which)
	c.Others(func() error { return c.Server.Status().Update(c.t.Context(), object) })
}

// writeKubeconfig is the kubeconfig of the default CloudSpace, of one before it, or none.
func (c *chaos) writeKubeconfig(which int) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeopera-system", Name: "cloudspace-alice-default-kubeconfig"}}
	c.Others(func() error { return c.Server.Delete(c.t.Context(), secret) })
	object := c.cloudSpace()
	if object == nil || which%3 == 2 {
		return
	}
	owner := []types.UID{object.UID, "uid-before"}[which%3]
	secret.Labels = apply.Owner{Tenant: "alice-default", CloudSpace: "default", UID: owner}.Labels()
	secret.Data = map[string][]byte{"config": []byte(owner)}
	c.Others(func() error { return c.Server.Create(c.t.Context(), secret) })
}

// cloudSpaceGoes lets a CloudSpace that is being deleted go.
func (c *chaos) cloudSpaceGoes(int) {
	if object := c.cloudSpace(); object != nil && !object.DeletionTimestamp.IsZero() {
		object.Finalizers = nil
		c.Others(func() error { return c.Server.Update(c.t.Context(), object) })
	}
}

// othersMake is somebody who was there before.
func (c *chaos) othersMake(which int) {
	named := metav1.ObjectMeta{Name: "default", Namespace: "tenant-alice-default"}
	made := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "tenant-alice-default"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeopera-system", Name: "tenant-alice-default-kubeconfig"}},
		&v1alpha1.CloudSpace{ObjectMeta: named, Spec: v1alpha1.CloudSpaceSpec{DeletionProtection: which%2 == 0}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-alice-default", Name: "cloudspace-owner"}},
	}
	c.Others(func() error { return c.Server.Create(c.t.Context(), made[which%len(made)]) })
}

// changeSpec is an administrator's doing.
func (c *chaos) changeSpec(which int) {
	object := c.tenant()
	if object == nil {
		return
	}
	switch which % 4 {
	case 0:
		object.Generation++
		object.Spec.DefaultCloudSpace.Template.Spec = spec(strconv.Itoa(1 + which%7))
	case 1:
		object.Generation++
		object.Spec.Members = []v1alpha1.Member{{Kind: v1alpha1.MemberUser, Name: "kubeopera:bob", Role: v1alpha1.MemberOwner}}
	case 2:
		object.Annotations = map[string]string{v1alpha1.AnnotationRetryRequested: strconv.Itoa(which)}
	default:
		object.Finalizers = nil
	}
	c.Others(func() error { return c.Server.Update(c.t.Context(), object) })
}

// tenant is the Tenant as it stands, or nil.
func (c *chaos) tenant() *v1alpha1.Tenant {
	c.t.Helper()
	object := testTenant()
	err := c.Server.Get(c.t.Context(), client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return object
}
