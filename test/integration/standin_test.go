// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/controllers"
)

// standIn does what the operator waits for from programs that do not run here:
//
//   - helm-controller: the finalizer and the status of a HelmRelease, written in the order, and with the reasons and messages,
//     in which version 1.6 writes them: prerequisites, waiting for the chart, the running action, its end. What it writes is
//     checked against the recordings of the real one in controllers/cloudspace/testdata/helmreleases. Of the vCluster chart it
//     makes the Deployment and the StatefulSet, with the labels and annotations that the release asks for, and rolls them when
//     they change; of others nothing.
//   - source-controller: the artifact of a HelmChart.
//   - vCluster: the Secret with its kubeconfig, with certificates of its own, when its API server runs.
//   - kube-controller-manager: status.hard of a ResourceQuota and the number of CloudSpaces in it, the status of Deployments and StatefulSets, and the emptying and
//     ending of a namespace.
//
// A behaviour, by the name of the object, makes one of these hang or fail.
type standIn struct {
	client client.Client

	mu         sync.Mutex
	behaviours map[string]behaviour
}

// behaviour is what goes wrong with the object of a name.
type behaviour struct {
	// hang leaves everything as it is: no status is written.
	hang bool
	// installed leaves a release that was made with all it installs, until it is deleted.
	installed bool
	// keep leaves what is being deleted as it is.
	keep bool
	// dead is a program that does not run: nothing at all is done.
	dead bool
	// fail is why an install or upgrade fails, or a chart cannot be fetched.
	fail string
	// kubeconfig is written by a vCluster in place of a good one; nothing is written when it is "none".
	kubeconfig string
}

const lookAgain = 20 * time.Millisecond

// behave sets how an object of this name goes wrong from now on; the zero behaviour mends it.
func (s *standIn) behave(name string, b behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behaviours[name] = b
}

func (s *standIn) of(name string) behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behaviours[name]
}

func newStandInManager() (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(impersonating("system:kube-controller-manager", masters), ctrl.Options{Scheme: controllers.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, err
	}
	theStandIn.client = mgr.GetClient()
	c := mgr.GetClient()
	for _, failed := range []error{
		ctrl.NewControllerManagedBy(mgr).Named("deployment").For(&appsv1.Deployment{}).Complete(reconcile.AsReconciler(c, asReconciler[*appsv1.Deployment](theStandIn.deployment))),
		ctrl.NewControllerManagedBy(mgr).Named("statefulset").For(&appsv1.StatefulSet{}).Complete(reconcile.AsReconciler(c, asReconciler[*appsv1.StatefulSet](theStandIn.statefulSet))),
		ctrl.NewControllerManagedBy(mgr).Named("helm-controller").For(&helmv2.HelmRelease{}).Complete(reconcile.AsReconciler(c, asReconciler[*helmv2.HelmRelease](theStandIn.helmRelease))),
		ctrl.NewControllerManagedBy(mgr).Named("source-controller").For(&sourcev1.HelmChart{}).Complete(reconcile.AsReconciler(c, asReconciler[*sourcev1.HelmChart](theStandIn.helmChart))),
		ctrl.NewControllerManagedBy(mgr).Named("resourcequota").For(&corev1.ResourceQuota{}).
			Watches(&v1alpha1.CloudSpace{}, handler.EnqueueRequestsFromMapFunc(ofItsNamespace)).Complete(reconcile.AsReconciler(c, asReconciler[*corev1.ResourceQuota](theStandIn.resourceQuota))),
		ctrl.NewControllerManagedBy(mgr).Named("namespace").For(&corev1.Namespace{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: 4}).Complete(reconcile.AsReconciler(c, asReconciler[*corev1.Namespace](theStandIn.namespace))),
	} {
		if failed != nil {
			return nil, failed
		}
	}
	return mgr, nil
}

// asReconciler looks again soon at what hangs or waits, and takes conflicts, and objects that have gone, as they come.
type asReconciler[T client.Object] func(context.Context, T) (wait bool, err error)

// Reconcile does one pass.
func (do asReconciler[T]) Reconcile(ctx context.Context, object T) (ctrl.Result, error) {
	wait, err := do(ctx, object)
	if wait || apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	return ctrl.Result{}, err
}

func (s *standIn) helmRelease(ctx context.Context, release *helmv2.HelmRelease) (wait bool, err error) {
	b := s.of(release.Name)
	if b.dead {
		return true, nil
	}
	if !release.DeletionTimestamp.IsZero() {
		return b.keep, s.uninstall(ctx, release, b)
	}
	if b.installed {
		return false, nil
	}
	if b.hang && !release.Spec.Suspend {
		return true, nil
	}
	if controllerutil.AddFinalizer(release, helmv2.HelmReleaseFinalizer) {
		return false, s.client.Update(ctx, release)
	}
	if release.Spec.Suspend || !asked(release) && (finished(release) || exhausted(release)) {
		return false, nil
	}
	if err := s.progress(ctx, release, "Fulfilling prerequisites", false); err != nil {
		return false, err
	}
	if ready, err := s.chartReady(ctx, release); err != nil || !ready {
		return true, err
	}
	if finished(release) && release.Annotations[helmv2.ResetRequestAnnotation] != release.Annotations[meta.ReconcileRequestAnnotation] {
		return false, s.lookForDrift(ctx, release)
	}
	if err := s.progress(ctx, release, "Running 'install' action with timeout of 10m0s", true); err != nil {
		return false, err
	}
	if b.fail != "" {
		return false, s.failed(ctx, release, b.fail)
	}
	if err := s.makeControlPlane(ctx, release); err != nil {
		return false, err
	}
	return false, s.installed(ctx, release)
}

// uninstall lets a release go; one that is suspended goes without being uninstalled.
func (s *standIn) uninstall(ctx context.Context, release *helmv2.HelmRelease, b behaviour) error {
	if !release.Spec.Suspend {
		if b.keep {
			return nil
		}
		for _, part := range controlPlaneOf(release) {
			if err := client.IgnoreNotFound(s.client.Delete(ctx, part)); err != nil {
				return err
			}
		}
	}
	controllerutil.RemoveFinalizer(release, helmv2.HelmReleaseFinalizer)
	return s.client.Update(ctx, release)
}

func (s *standIn) statefulSet(ctx context.Context, etcd *appsv1.StatefulSet) (wait bool, err error) {
	if s.of(etcd.Name).hang || etcd.Status.ObservedGeneration == etcd.Generation {
		return s.of(etcd.Name).hang, nil
	}
	before := etcd.DeepCopy()
	etcd.Status = appsv1.StatefulSetStatus{
		ObservedGeneration: etcd.Generation, Replicas: *etcd.Spec.Replicas, ReadyReplicas: *etcd.Spec.Replicas, UpdatedReplicas: *etcd.Spec.Replicas,
		CurrentReplicas: *etcd.Spec.Replicas, CurrentRevision: "a", UpdateRevision: "a",
	}
	return false, s.client.Status().Patch(ctx, etcd, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// deployment makes an API server run; then its vCluster writes the kubeconfig.
func (s *standIn) deployment(ctx context.Context, server *appsv1.Deployment) (wait bool, err error) {
	b := s.of(server.Namespace)
	if b.hang || !server.DeletionTimestamp.IsZero() {
		return b.hang, nil
	}
	if server.Status.ObservedGeneration != server.Generation {
		before := server.DeepCopy()
		server.Status = appsv1.DeploymentStatus{
			ObservedGeneration: server.Generation, Replicas: *server.Spec.Replicas, ReadyReplicas: *server.Spec.Replicas,
			UpdatedReplicas: *server.Spec.Replicas, AvailableReplicas: *server.Spec.Replicas,
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}},
		}
		if err := s.client.Status().Patch(ctx, server, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return false, err
		}
	}
	return b.kubeconfig == "none", s.writeKubeconfig(ctx, server, b.kubeconfig)
}

// finished tells whether the release as it is specified now is installed.
func finished(release *helmv2.HelmRelease) bool {
	return release.Status.ObservedGeneration == release.Generation && apimeta.IsStatusConditionTrue(release.Status.Conditions, meta.ReadyCondition)
}

// asked tells whether a try was asked for that was not made yet.
func asked(release *helmv2.HelmRelease) bool {
	token, ok := meta.ReconcileAnnotationValue(release.Annotations)
	return ok && token != release.Status.LastHandledReconcileAt
}

// exhausted tells whether the one try of this spec failed: helm-controller then waits for another spec, or to be asked.
func exhausted(release *helmv2.HelmRelease) bool {
	return release.Status.ObservedGeneration == release.Generation && apimeta.IsStatusConditionTrue(release.Status.Conditions, meta.StalledCondition)
}

// progress is what helm-controller says before and while an action runs. status.observedGeneration stays behind.
func (s *standIn) progress(ctx context.Context, release *helmv2.HelmRelease, message string, running bool) error {
	return s.patchStatus(ctx, release, func() {
		apimeta.RemoveStatusCondition(&release.Status.Conditions, meta.StalledCondition)
		set(release, meta.ReconcilingCondition, metav1.ConditionTrue, meta.ProgressingReason, message)
		if running {
			set(release, meta.ReadyCondition, metav1.ConditionUnknown, meta.ProgressingReason, message)
		}
	})
}

func (s *standIn) chartReady(ctx context.Context, release *helmv2.HelmRelease) (bool, error) {
	chart := &sourcev1.HelmChart{}
	key := client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.ChartRef.Name}
	if err := s.client.Get(ctx, key, chart); err != nil {
		return false, err
	}
	if chart.Status.Artifact != nil {
		return true, nil
	}
	return false, s.patchStatus(ctx, release, func() {
		set(release, meta.ReadyCondition, metav1.ConditionFalse, "SourceNotReady", fmt.Sprintf("HelmChart '%s' is not ready: does not have an artifact", key))
	})
}

func (s *standIn) failed(ctx context.Context, release *helmv2.HelmRelease, why string) error {
	return s.patchStatus(ctx, release, func() {
		message := fmt.Sprintf("Helm install failed for release %s/%s with chart a@1: %s", release.Spec.TargetNamespace, release.Spec.ReleaseName, why)
		set(release, helmv2.ReleasedCondition, metav1.ConditionFalse, helmv2.InstallFailedReason, message)
		set(release, meta.ReadyCondition, metav1.ConditionFalse, helmv2.InstallFailedReason, message)
		apimeta.RemoveStatusCondition(&release.Status.Conditions, meta.ReconcilingCondition)
		set(release, meta.StalledCondition, metav1.ConditionTrue, "RetriesExceeded", "Failed to install after 1 attempt(s)")
		release.Status.History = helmv2.Snapshots{snapshot(release, "a", "1", "failed")}
		handled(release)
	})
}

// handled says that this spec, and what was asked for, is dealt with.
func handled(release *helmv2.HelmRelease) {
	release.Status.ObservedGeneration = release.Generation
	if token, ok := meta.ReconcileAnnotationValue(release.Annotations); ok {
		release.Status.LastHandledReconcileAt = token
	}
}

func snapshot(release *helmv2.HelmRelease, chart, chartVersion, status string) *helmv2.Snapshot {
	version := 1
	if latest := release.Status.History.Latest(); latest != nil {
		version = latest.Version + 1
	}
	now := metav1.Now().Rfc3339Copy()
	digest := sha256.Sum256(fmt.Appendf(nil, "%s.v%d", release.Spec.ReleaseName, version))
	return &helmv2.Snapshot{
		Name: release.Spec.ReleaseName, Namespace: release.Spec.TargetNamespace, Version: version, Status: status,
		ChartName: chart, ChartVersion: chartVersion, ConfigDigest: "sha256:0", Digest: "sha256:" + hex.EncodeToString(digest[:]),
		FirstDeployed: now, LastDeployed: now,
	}
}

func (s *standIn) installed(ctx context.Context, release *helmv2.HelmRelease) error {
	chart := &sourcev1.HelmChart{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.ChartRef.Name}, chart); err != nil {
		return err
	}
	return s.patchStatus(ctx, release, func() {
		made := snapshot(release, chart.Spec.Chart, chart.Spec.Version, "deployed")
		message := fmt.Sprintf("Helm install succeeded for release %s/%s.v%d with chart %s@%s",
			made.Namespace, made.Name, made.Version, made.ChartName, made.ChartVersion)
		set(release, helmv2.ReleasedCondition, metav1.ConditionTrue, helmv2.InstallSucceededReason, message)
		set(release, meta.ReadyCondition, metav1.ConditionTrue, helmv2.InstallSucceededReason, message)
		apimeta.RemoveStatusCondition(&release.Status.Conditions, meta.ReconcilingCondition)
		release.Status.History = append(helmv2.Snapshots{made}, release.Status.History...)
		release.Status.StorageNamespace = release.Spec.StorageNamespace
		release.Status.Inventory = inventory(release)
		handled(release)
	})
}

// patchStatus writes what the change alters, if anything.
func (s *standIn) patchStatus(ctx context.Context, release *helmv2.HelmRelease, change func()) error {
	before := release.DeepCopy()
	change()
	if equality.Semantic.DeepEqual(before.Status, release.Status) {
		return nil
	}
	return s.client.Status().Patch(ctx, release, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func set(release *helmv2.HelmRelease, kind string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&release.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: release.Generation,
	})
}

// writeKubeconfig is what a vCluster does once its API server is up, and again when the Secret is taken away.
func (s *standIn) writeKubeconfig(ctx context.Context, server *appsv1.Deployment, text string) error {
	if text == "none" {
		return nil
	}
	if text == "" {
		fresh, err := newKubeconfig(serverOf(server.Name), time.Now().Add(364*24*time.Hour))
		if err != nil {
			return err
		}
		text = string(fresh)
	}
	written := secret(server.Namespace, "vc-"+server.Name)
	written.Data = map[string][]byte{"config": []byte(text)}
	if err := s.client.Create(ctx, written); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

func (s *standIn) helmChart(ctx context.Context, chart *sourcev1.HelmChart) (wait bool, err error) {
	b := s.of(chart.Name)
	if b.hang || (b.fail == "" && chart.Status.Artifact != nil && chart.Status.ObservedGeneration == chart.Generation) {
		return b.hang, nil
	}
	before := chart.DeepCopy()
	condition := metav1.Condition{Type: meta.ReadyCondition, ObservedGeneration: chart.Generation}
	if b.fail != "" {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "ChartPullError", b.fail
		chart.Status.Artifact = nil
	} else {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, "ChartPullSucceeded", "pulled"
		chart.Status.Artifact = &meta.Artifact{
			Path: "a.tgz", URL: "http://source-controller/a.tgz", Revision: chart.Spec.Version,
			Digest: "sha256:" + strings.Repeat("0", 64), LastUpdateTime: metav1.Now().Rfc3339Copy(),
		}
		chart.Status.ObservedGeneration = chart.Generation
	}
	apimeta.SetStatusCondition(&chart.Status.Conditions, condition)
	if equality.Semantic.DeepEqual(before.Status, chart.Status) {
		return b.fail != "", nil
	}
	return b.fail != "", s.client.Status().Patch(ctx, chart, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (s *standIn) resourceQuota(ctx context.Context, quota *corev1.ResourceQuota) (wait bool, err error) {
	if s.of(quota.Name + "." + quota.Namespace).hang {
		return true, nil
	}
	before := quota.DeepCopy()
	quota.Status.Hard = quota.Spec.Hard
	used := corev1.ResourceList{}
	for name := range quota.Spec.Hard {
		used[name] = quota.Status.Used[name]
	}
	quota.Status.Used = used
	if _, counts := quota.Spec.Hard[cloudSpaceCount]; counts {
		list := &v1alpha1.CloudSpaceList{}
		if err := s.client.List(ctx, list, client.InNamespace(quota.Namespace)); err != nil {
			return false, err
		}
		used[cloudSpaceCount] = *resource.NewQuantity(int64(len(list.Items)), resource.DecimalSI)
	}
	if equality.Semantic.DeepEqual(before.Status, quota.Status) {
		return false, nil
	}
	return false, s.client.Status().Patch(ctx, quota, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// cloudSpaceCount is how a ResourceQuota calls the number of CloudSpaces.
const cloudSpaceCount = corev1.ResourceName("count/cloudspaces.tenancy.kubeopera.io")

// ofItsNamespace finds the ResourceQuota that counts a CloudSpace.
func ofItsNamespace(_ context.Context, object client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: "cloudspace"}}}
}

// namespace empties a namespace that is being deleted and ends it.
func (s *standIn) namespace(ctx context.Context, namespace *corev1.Namespace) (wait bool, err error) {
	if namespace.DeletionTimestamp.IsZero() {
		return false, nil
	}
	if s.of(namespace.Name).keep {
		return true, nil
	}
	in := client.InNamespace(namespace.Name)
	for _, kind := range []client.Object{&v1alpha1.CloudSpace{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}, &corev1.Secret{}, &corev1.ResourceQuota{}, &corev1.LimitRange{}, &rbacv1.RoleBinding{}, &rbacv1.Role{}, &corev1.Service{}, &corev1.ServiceAccount{}, &policyv1.PodDisruptionBudget{}, &networkingv1.Ingress{}, &networkingv1.NetworkPolicy{}, &gatewayv1.TLSRoute{}} {
		if err := s.client.DeleteAllOf(ctx, kind, in); err != nil {
			return false, err
		}
	}
	left := &v1alpha1.CloudSpaceList{}
	if err := s.client.List(ctx, left, in); err != nil || len(left.Items) > 0 {
		return true, err
	}
	namespace.Spec.Finalizers = nil
	return false, s.client.SubResource("finalize").Update(ctx, namespace)
}

// fakeFlux answers for Flux inside CloudSpaces: it runs, unless a test says what is missing, by the context's name.
type fakeFlux struct {
	mu      sync.Mutex
	missing map[string]string
	asked   map[string]int
}

func (f *fakeFlux) Missing(_ context.Context, kubeconfig []byte) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := contextOf(kubeconfig)
	if f.asked == nil {
		f.asked = map[string]int{}
	}
	f.asked[name]++
	return f.missing[name], nil
}

func (f *fakeFlux) set(context, missing string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missing[context] = missing
}

// total tells how often all CloudSpaces together were asked about Flux.
func (f *fakeFlux) total() (sum int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.asked {
		sum += n
	}
	return sum
}

// times tells how often a CloudSpace was asked about Flux.
func (f *fakeFlux) times(context string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[context]
}
