// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/time/rate"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// How often Flux is asked to compare a control plane with its chart: never sooner than driftPause after the last time, and no
// more than driftBurst times before it is once in driftEvery. Who alters things again and again does not keep Flux from others.
const (
	driftPause = 10 * time.Second
	driftEvery = time.Minute
	driftBurst = 6
)

// parts is what the chart of the control plane made, as the caches have it.
type parts struct {
	// look names the last time that Flux compared what stands with the chart.
	look string
	// digest changes when one of the parts is altered, replaced or removed.
	digest string
	// missing names the first one that is not there; empty when all are.
	missing string
}

// mendDrift asks Flux to put right what was altered or removed by hand. Flux alone knows what the chart says, and looks by itself
// only once in a long while. What stood after Flux looked is right: status keeps a digest of that, so that what happens while the
// operator is down is noticed too, and a restart asks nothing.
func (r *Reconciler) mendDrift(ctx context.Context, s *scope) (err error) {
	o := &s.observed
	if o.parts, err = r.observeParts(ctx, o.controlPlane); err != nil {
		return err
	}
	recorded := s.object.Status.Drift
	switch {
	case o.parts.missing != "":
		return r.askFluxToLook(ctx, s, o.parts.missing+" is gone")
	case o.parts.digest != "" && recorded.Look == o.parts.look && recorded.Parts != o.parts.digest:
		return r.askFluxToLook(ctx, s, "something was altered")
	default:
		return nil
	}
}

// askFluxToLook asks once, and not before the time has come; then there is another pass. It waits for Flux to have done what it was
// asked before.
func (r *Reconciler) askFluxToLook(ctx context.Context, s *scope, why string) error {
	release := s.observed.controlPlane
	if request, asked := meta.ReconcileAnnotationValue(release.Annotations); asked && request != release.Status.LastHandledReconcileAt {
		return nil
	}
	// A longer wait is of a clock that was ahead.
	if wait := lookedAt(release).Add(driftPause).Sub(s.now); wait > 0 && wait <= driftPause {
		s.comeBack = earlier(s.comeBack, wait)
		return nil
	}
	if wait := r.looks.wait(s.key(), s.now); wait > 0 {
		s.comeBack = earlier(s.comeBack, wait)
		return nil
	}
	if err := r.Annotate(ctx, release, meta.ReconcileRequestAnnotation, s.token); err != nil {
		return err
	}
	r.event(s.object, corev1.EventTypeWarning, eventDrift, "of the control plane's own objects "+why+": Flux is asked to put it right")
	return nil
}

// lookedAt is when Flux was last asked to look, or began to install.
func lookedAt(release *helmv2.HelmRelease) time.Time {
	// What people ask with has a time in it too; what has none is long ago.
	asked, _ := time.Parse(time.RFC3339Nano, release.Status.LastHandledReconcileAt)
	if latest := latestRelease(release); latest != nil && latest.LastDeployed.After(asked) {
		return latest.LastDeployed.Time
	}
	return asked
}

// observeParts reads what a release has installed on the host cluster. What is not watched is left out.
func (r *Reconciler) observeParts(ctx context.Context, release *helmv2.HelmRelease) (parts, error) {
	seen := parts{look: look(release)}
	if release.Status.Inventory == nil {
		return seen, nil
	}
	sum := sha256.New()
	for _, id := range sortedIDs(release.Status.Inventory) {
		object := part(id)
		if object == nil {
			continue
		}
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			seen.missing = fmt.Sprintf("%s %s", id[strings.LastIndex(id, "_")+1:], object.GetName())
			return seen, nil
		}
		if err != nil {
			return seen, err
		}
		fmt.Fprintf(sum, "%s %s %s\n", id, object.GetUID(), edition(object))
	}
	seen.digest = hex.EncodeToString(sum.Sum(nil)[:16])
	return seen, nil
}

// look changes each time that Flux has installed a release or has done what it was asked for.
func look(release *helmv2.HelmRelease) string {
	number := 0
	if latest := latestRelease(release); latest != nil {
		number = latest.Version
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d/%s", release.UID, release.Generation, number, release.Status.LastHandledReconcileAt))
	return hex.EncodeToString(sum[:16])
}

// edition changes with what an object says, and, where Kubernetes counts that, not with its status.
func edition(object client.Object) string {
	if generation := object.GetGeneration(); generation > 0 {
		return fmt.Sprintf("g%d", generation)
	}
	return object.GetResourceVersion()
}

func sortedIDs(inventory *helmv2.ResourceInventory) []string {
	ids := make([]string, 0, len(inventory.Entries))
	for _, entry := range inventory.Entries {
		ids = append(ids, entry.ID)
	}
	slices.Sort(ids)
	return ids
}

// part is the empty object that an entry of an inventory names, <namespace>_<name>_<group>_<kind>, or nil when its kind is not
// watched.
func part(id string) client.Object {
	fields := strings.Split(id, "_")
	if len(fields) != 4 {
		return nil
	}
	var object client.Object
	switch kind := (schema.GroupKind{Group: fields[2], Kind: fields[3]}); kind {
	case appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind():
		object = &appsv1.Deployment{}
	case appsv1.SchemeGroupVersion.WithKind("StatefulSet").GroupKind():
		object = &appsv1.StatefulSet{}
	case rbacv1.SchemeGroupVersion.WithKind("RoleBinding").GroupKind():
		object = &rbacv1.RoleBinding{}
	default:
		i := slices.IndexFunc(metadataOnly, func(gvk schema.GroupVersionKind) bool { return gvk.GroupKind() == kind })
		if i < 0 {
			return nil
		}
		object = metadata(metadataOnly[i])
	}
	object.SetNamespace(fields[0])
	object.SetName(fields[1])
	return object
}

// metadataOnly are the kinds that the chart makes and of which the operator need not know more than that they changed.
var metadataOnly = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Service"),
	corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	rbacv1.SchemeGroupVersion.WithKind("Role"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
	policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
}

// MetadataOnly gives an empty object of each kind of which only the metadata is cached.
func MetadataOnly() []client.Object {
	objects := make([]client.Object, 0, len(metadataOnly))
	for _, gvk := range metadataOnly {
		objects = append(objects, metadata(gvk))
	}
	return objects
}

func metadata(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(gvk)
	return object
}

// nextDrift is what status keeps of a pass: how things stood after Flux looked, once the control plane runs, or is suspended. Until Flux looks again
// it stays: what differs from it is drift.
func nextDrift(previous v1alpha1.DriftStatus, seen parts, settled bool) v1alpha1.DriftStatus {
	if !settled || seen.digest == "" || seen.look == previous.Look {
		return previous
	}
	return v1alpha1.DriftStatus{Look: seen.look, Parts: seen.digest}
}

// looks remembers how often Flux was asked to look, for each CloudSpace. It is memory only.
type looks struct{ byName sync.Map }

// wait is how long it is until Flux may be asked; zero means that it may be now, and counts as asked.
func (l *looks) wait(cloudSpace types.NamespacedName, now time.Time) time.Duration {
	entry, _ := l.byName.LoadOrStore(cloudSpace, rate.NewLimiter(rate.Every(driftEvery), driftBurst))
	limiter, ok := entry.(*rate.Limiter)
	if !ok {
		return 0
	}
	reservation := limiter.ReserveN(now, 1)
	wait := reservation.DelayFrom(now)
	if wait > 0 {
		reservation.CancelAt(now)
	}
	return wait
}

func (l *looks) forget(cloudSpace types.NamespacedName) { l.byName.Delete(cloudSpace) }
