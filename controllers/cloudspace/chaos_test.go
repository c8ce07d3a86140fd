// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/apply/applytest"
)

// chaos is a host cluster in which anything can befall what belongs to one CloudSpace.
type chaos struct {
	applytest.World
	t     *testing.T
	r     *Reconciler
	clock *clocktesting.FakePassiveClock
	// source is what is seen of the kubeconfig that the vCluster writes.
	source cache.Store
	flux   struct {
		missing string
		err     error
	}
}

// Missing answers for Flux inside.
func (c *chaos) Missing(context.Context, []byte) (string, error) { return c.flux.missing, c.flux.err }

// Minor is the host cluster's version.
func (c *chaos) Minor(context.Context) (int, error) { return 36, nil }

var chaosScheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, networkingv1.AddToScheme, v1alpha1.AddToScheme, helmv2.AddToScheme, sourcev1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
})

func newChaos(t *testing.T) *chaos {
	t.Helper()
	c := &chaos{t: t, clock: clocktesting.NewFakePassiveClock(noon), source: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	c.Ours = ours
	c.Kinds = []client.ObjectList{
		&v1alpha1.TenantList{}, &corev1.NamespaceList{}, &rbacv1.RoleBindingList{}, &corev1.LimitRangeList{}, &corev1.ResourceQuotaList{}, &corev1.SecretList{},
		&helmv2.HelmReleaseList{}, &sourcev1.HelmChartList{}, &sourcev1.HelmRepositoryList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{},
	}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "alice-default", UID: "uid-tenant"}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "tenant-alice-default", UID: "uid-namespace", Labels: map[string]string{v1alpha1.LabelTenant: "alice-default"},
	}}
	c.Server = fake.NewClientBuilder().WithScheme(chaosScheme()).WithObjects(tenant, namespace, granting(testCloudSpace("default")), testCloudSpace("default")).
		WithStatusSubresource(&v1alpha1.CloudSpace{}, &helmv2.HelmRelease{}, &corev1.ResourceQuota{}).
		WithIndex(&helmv2.HelmRelease{}, rollingIndex, indexRolling).WithInterceptorFuncs(c.Funcs()).Build()
	platform := testPlatform(t)
	c.r = &Reconciler{
		Applier: apply.Applier{Client: c.Server, Live: c.Server}, Platform: platform, Recorder: &events.FakeRecorder{}, Clock: c.clock, Flux: c, Host: c,
		Rollout:     &Rollout{Reader: c.Server, Limits: platform.Rollout, Clock: c.clock},
		Kubeconfigs: NewKubeconfigWatch(nil),
		PullSecrets: NewPullSecretWatch(nil),
	}
	key := client.ObjectKeyFromObject(testCloudSpace("default"))
	c.r.Kubeconfigs.followed[key] = &followed{of: "uid-1", store: c.source, namespace: "vcluster-alice-default", synced: func() bool { return true }, stop: func() {}}
	return c
}

// Acts of the days that are lived in tests; others have no name.
const (
	actPass = iota
	actQuotaEnforced
	actFluxDone
	actWorkloads
	actKubeconfig
	actDeleteOwner
)

// acts are what can befall; the number chooses among what it can befall, or how.
var acts = []func(c *chaos, which int){
	actPass:          func(*chaos, int) {},
	actQuotaEnforced: (*chaos).enforceQuota,
	actFluxDone:      (*chaos).fluxIsDone,
	actWorkloads:     (*chaos).runWorkloads,
	actKubeconfig:    (*chaos).writeKubeconfig,
	actDeleteOwner: func(c *chaos, _ int) {
		c.Others(func() error { return c.Server.Delete(c.t.Context(), testCloudSpace("default")) })
	},
	(*chaos).recordedRelease,
	func(c *chaos, which int) { c.Befall(c.t, which, func(o client.Object) { o.SetLabels(nil) }) },
	func(c *chaos, which int) {
		c.Befall(c.t, which, func(o client.Object) {
			o.SetLabels(map[string]string{v1alpha1.LabelOwnerUID: "somebody", v1alpha1.LabelTenant: "mallory"})
		})
	},
	func(c *chaos, which int) {
		c.Befall(c.t, which, func(o client.Object) { o.SetLabels(map[string]string{v1alpha1.LabelOwnerUID: "uid-1"}) })
	},
	func(c *chaos, which int) {
		c.Befall(c.t, which, func(o client.Object) { o.SetFinalizers([]string{"example.com/hold"}) })
		c.Remove(c.t, which)
	},
	func(c *chaos, which int) { c.Befall(c.t, which, func(o client.Object) { o.SetFinalizers(nil) }) },
	func(c *chaos, which int) { c.Remove(c.t, which) },
	func(c *chaos, which int) {
		c.Befall(c.t, which, func(o client.Object) { o.SetGeneration(o.GetGeneration() + 1) })
	},
	func(c *chaos, which int) { c.clock.SetTime(c.clock.Now().Add(time.Duration(which) * 10 * time.Second)) },
	func(c *chaos, which int) { c.clock.SetTime(c.clock.Now().Add(time.Hour * time.Duration(which%3-1))) },
	(*chaos).changeSpec,
	func(c *chaos, which int) { c.RefuseNext(which) },
	func(c *chaos, which int) { c.flux.missing = []string{"", "helm-controller"}[which%2] },
	func(c *chaos, which int) { c.flux.err = []error{nil, errBoom}[which%2] },
}

func (c *chaos) enforceQuota(int) {
	list := &corev1.ResourceQuotaList{}
	if err := c.Server.List(c.t.Context(), list); err != nil {
		c.t.Fatal(err)
	}
	for i := range list.Items {
		quota := &list.Items[i]
		quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, minus(quota.Spec.Hard, quota.Spec.Hard)
		c.Others(func() error { return c.Server.Status().Update(c.t.Context(), quota) })
	}
}

// release is one of the HelmReleases that stand, or nil.
func (c *chaos) release(which int) *helmv2.HelmRelease {
	list := &helmv2.HelmReleaseList{}
	if err := c.Server.List(c.t.Context(), list); err != nil || len(list.Items) == 0 {
		return nil
	}
	return &list.Items[which%len(list.Items)]
}

// fluxIsDone has Flux install a release as it is.
func (c *chaos) fluxIsDone(which int) {
	release := c.release(which)
	if release == nil {
		return
	}
	release.Status.ObservedGeneration = release.Generation
	release.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionTrue, "InstallSucceeded", release.Generation)}
	release.Status.History = helmv2.Snapshots{{Version: 1, Status: "deployed", ChartVersion: recordedVersion(release), Digest: "sha256:0"}}
	release.Status.LastHandledReconcileAt = release.Annotations["reconcile.fluxcd.io/requestedAt"]
	c.Others(func() error { return c.Server.Status().Update(c.t.Context(), release) })
}

// recordedRelease gives a release a status that a real one had.
func (c *chaos) recordedRelease(which int) {
	release := c.release(which % 2)
	paths, err := filepath.Glob("testdata/helmreleases/*.yaml")
	if err != nil || release == nil {
		return
	}
	recorded := decoded(c.t, paths[which%len(paths)], &helmv2.HelmRelease{})
	release.Status = recorded.Status
	c.Others(func() error { return c.Server.Status().Update(c.t.Context(), release) })
}

// runWorkloads makes what the release installs, running or not.
func (c *chaos) runWorkloads(which int) {
	release := c.release(0)
	if release == nil || release.Spec.CommonMetadata == nil {
		return
	}
	members := int32(1)
	if suspended(release, newScope(testCloudSpace("default")).names) {
		members = 0
	}
	ready := members * int32((which+1)%2)
	named := func(name string) metav1.ObjectMeta {
		common := release.Spec.CommonMetadata
		return metav1.ObjectMeta{Namespace: "vcluster-alice-default", Name: name, Labels: common.Labels, Annotations: common.Annotations}
	}
	for _, o := range []client.Object{
		&appsv1.StatefulSet{
			ObjectMeta: named("alice-default-etcd"), Spec: appsv1.StatefulSetSpec{Replicas: &members},
			Status: appsv1.StatefulSetStatus{Replicas: members, ReadyReplicas: ready, UpdatedReplicas: members},
		},
		&appsv1.Deployment{
			ObjectMeta: named("alice-default"), Spec: appsv1.DeploymentSpec{Replicas: &members},
			Status: appsv1.DeploymentStatus{
				Replicas: members, UpdatedReplicas: members, AvailableReplicas: ready,
				Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
			},
		},
	} {
		c.Others(func() error { return c.Server.Delete(c.t.Context(), o) })
		// As with a real one, creating writes no status.
		created := o.DeepCopyObject().(client.Object)
		c.Others(func() error { return c.Server.Create(c.t.Context(), created) })
		o.SetUID(created.GetUID())
		o.SetResourceVersion(created.GetResourceVersion())
		c.Others(func() error { return c.Server.Status().Update(c.t.Context(), o) })
	}
}

var writtenKubeconfig struct {
	sync.Once
	text []byte
}

// writeKubeconfig is the vCluster writing its kubeconfig, or somebody in its place.
func (c *chaos) writeKubeconfig(which int) {
	// Keys take their time: all days have the same.
	writtenKubeconfig.Do(func() {
		writtenKubeconfig.text = kubeconfigSeeds(c.t, newScope(testCloudSpace("default")).names)[filepath.Join("testdata", "kubeconfigs", "written-accepted.yaml")]
	})
	texts := [][]byte{writtenKubeconfig.text, nil, []byte("{"), []byte("kind: Config")}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "vcluster-alice-default", Name: "vc-alice-default"}}
	if text := texts[which%len(texts)]; text != nil {
		secret.Data = map[string][]byte{kubeconfigSourceKey: text}
		_ = c.source.Add(secret)
		return
	}
	_ = c.source.Delete(secret)
}

// changeSpec is the tenant's doing.
func (c *chaos) changeSpec(which int) {
	object := c.object()
	if object == nil {
		return
	}
	object.Generation++
	switch which % 6 {
	case 0:
		object.Spec.KubernetesVersion = []string{"", "v1.36.0", "v1.20.0", "nonsense"}[which/6%4]
	case 1:
		object.Spec.Resources.CPU = resource.MustParse([]string{"2", "100m", "64"}[which/6%3])
	case 2:
		object.Spec.ControlPlane.Size = v1alpha1.ControlPlaneSize([]string{"Small", "Medium", "Huge"}[which/6%3])
	case 3:
		object.Annotations = map[string]string{v1alpha1.AnnotationRetryRequested: strconv.Itoa(which)}
		object.Generation--
	case 4:
		object.Spec.Suspend = !object.Spec.Suspend
	default:
		object.Finalizers = nil
		object.Generation--
	}
	c.Others(func() error { return c.Server.Update(c.t.Context(), object) })
}
