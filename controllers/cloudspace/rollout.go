// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"strings"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

// annotationRolling stands on the HelmRelease of a control plane while it is changed, and says who asked for the change first, and
// since when: <cause>/<time>. It is how a rollout outlives a restart of the operator.
const annotationRolling = "tenancy.kubeopera.io/rolling"

// Causes of a change.
const (
	rolledBySpec     = "spec"
	rolledByPlatform = "platform"
	// rolledToMend is a change of the platform to a control plane that did not run before: it says nothing about the change.
	rolledToMend = "mend"
)

// Turn is who asked for a change of a control plane, and since when it has its turn: what annotationRolling says. Its zero value is
// none.
type Turn struct {
	cause string
	since time.Time
}

// String is the text of the annotation.
func (t Turn) String() string { return t.cause + "/" + t.since.UTC().Format(time.RFC3339) }

func turnOf(release client.Object) Turn {
	cause, since, _ := strings.Cut(release.GetAnnotations()[annotationRolling], "/")
	// A turn without a time that can be read began long ago.
	began, _ := time.Parse(time.RFC3339, since)
	return Turn{cause: cause, since: began}
}

// rollingIndex finds the HelmReleases that are being changed, in the cache.
const rollingIndex = "rolling"

func indexRolling(object client.Object) []string {
	if turnOf(object).cause != "" {
		return []string{"true"}
	}
	return nil
}

const (
	// turnPoll is how often one that waits looks by itself; usually the end of another one's turn wakes it.
	turnPoll = time.Minute
	// turnForgotten is when one that waited and was not heard of since has lost its place.
	turnForgotten = 3 * turnPoll
	// turnUnseen is how long a turn is remembered that the cache does not show yet.
	turnUnseen = 10 * time.Second
)

// Rollout gives control planes their turn to be changed: so many at a time for each cause, tenant by tenant, and no further one with a
// change of the platform once it failed for others. A turn is over for others, and failed, when it took longer than it may: nothing
// that a tenant can do makes it longer.
type Rollout struct {
	Reader client.Reader
	Limits configv1alpha1.Rollout
	// Patience is how long a turn may take.
	Patience time.Duration
	Clock    clock.PassiveClock

	mu sync.Mutex
	// begun are turns given lately, waiting are those who asked in vain, served is when a tenant last had a turn.
	begun   map[types.UID]Turn
	waiting map[types.UID]waiter
	served  map[string]time.Time
}

// waiter is a CloudSpace that waits for its turn.
type waiter struct {
	key         types.NamespacedName
	since, seen time.Time
	cause       string
}

// Begin gives a CloudSpace its turn, or the error that says why it must wait.
func (r *Rollout) Begin(ctx context.Context, object *v1alpha1.CloudSpace, cause string) (Turn, error) {
	rolling, failed, err := r.rolling(ctx)
	if err != nil {
		return Turn{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Clock.Now()
	if given, ok := r.begun[object.UID]; ok && given.cause == cause && now.Sub(given.since).Abs() <= turnUnseen {
		// It could not be written down the last time.
		return given, nil
	}
	r.remember(object, cause, now)
	if cause == rolledByPlatform && failed > r.Limits.MaxFailed {
		return Turn{}, step.WaitFor(turnPoll, v1alpha1.ReasonRolloutStopped, "a change of the platform was stopped: it failed for other control planes; this one works on as it is")
	}
	if r.taken(rolling, cause, now) >= r.Limits.MaxConcurrent || r.first(cause, now) != object.UID {
		return Turn{}, step.WaitFor(turnPoll, v1alpha1.ReasonWaitingForTurn, "the change of the control plane waits for its turn; until then it works on as it is")
	}
	given := Turn{cause: cause, since: now}
	delete(r.waiting, object.UID)
	r.begun[object.UID] = given
	r.served[object.Namespace] = now
	return given, nil
}

// End takes the turn back of a CloudSpace that is done: the cache may never have shown it.
func (r *Rollout) End(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begun, uid)
}

// Leave forgets a CloudSpace that does not wait any more.
func (r *Rollout) Leave(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, uid)
}

// Next are the CloudSpaces whose turn it is when there is room for one.
func (r *Rollout) Next() []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	var next []types.NamespacedName
	for _, cause := range []string{rolledByPlatform, rolledBySpec, rolledToMend} {
		if w, ok := r.waiting[r.first(cause, r.Clock.Now())]; ok {
			next = append(next, w.key)
		}
	}
	return next
}

// rolling tells, as the cache has it, whose control planes are being changed, with their turns, and how many failed with a change of
// the platform.
func (r *Rollout) rolling(ctx context.Context) (rolling map[types.UID]Turn, failed int, err error) {
	list := &helmv2.HelmReleaseList{}
	if err := r.Reader.List(ctx, list, client.InNamespace(names.SystemNamespace), client.MatchingFields{rollingIndex: "true"}); err != nil {
		return nil, 0, err
	}
	rolling = map[types.UID]Turn{}
	for i := range list.Items {
		release := &list.Items[i]
		switch outcome, err := r.outcome(ctx, release); {
		case err != nil:
			return nil, 0, err
		case outcome == turnGoesOn:
			rolling[types.UID(release.Labels[v1alpha1.LabelOwnerUID])] = turnOf(release)
		case outcome == turnFailed && turnOf(release).cause == rolledByPlatform:
			failed++
		}
	}
	return rolling, failed, nil
}

// Outcomes of a turn that was not ended by its control plane.
type turnOutcome int

const (
	turnGoesOn turnOutcome = iota
	turnFailed
	// turnVoid says nothing about the change and keeps nobody from theirs.
	turnVoid
)

// outcome judges by how long a turn takes and by what Flux says, not by conditions whose deadlines begin anew when somebody asks
// for a retry. What is being deleted, or has lost its CloudSpace, has no turn; and that the tenant's own pods leave no room for the
// new one is no failure of the change.
func (r *Rollout) outcome(ctx context.Context, release *helmv2.HelmRelease) (turnOutcome, error) {
	object := &v1alpha1.CloudSpace{}
	key := client.ObjectKey{Namespace: names.TenantNamespace(release.Labels[v1alpha1.LabelTenant]), Name: release.Labels[v1alpha1.LabelCloudSpace]}
	if err := client.IgnoreNotFound(r.Reader.Get(ctx, key, object)); err != nil {
		return turnVoid, err
	}
	if !release.DeletionTimestamp.IsZero() || !object.DeletionTimestamp.IsZero() || string(object.UID) != release.Labels[v1alpha1.LabelOwnerUID] {
		return turnVoid, nil
	}
	overdue := r.Clock.Since(turnOf(release).since).Abs() > r.Patience
	if c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionControlPlaneReady); c != nil && c.Reason == v1alpha1.ReasonPodsRefused && overdue {
		return turnVoid, nil
	}
	last := object.Status.Retry.LastError
	if overdue || (last != nil && last.Step == v1alpha1.ConditionControlPlaneReady && last.Reason == v1alpha1.ReasonInstallFailed) {
		return turnFailed, nil
	}
	return turnGoesOn, nil
}

// taken is how many have their turn for this cause: those that the cache shows, and those that it does not show yet.
func (r *Rollout) taken(rolling map[types.UID]Turn, cause string, now time.Time) int {
	count := 0
	for _, t := range rolling {
		if t.cause == cause {
			count++
		}
	}
	for uid, t := range r.begun {
		_, seen := rolling[uid]
		switch {
		case seen, now.Sub(t.since).Abs() > turnUnseen:
			delete(r.begun, uid)
		case t.cause == cause:
			count++
		}
	}
	return count
}

// remember puts one into the line, where it keeps its place.
func (r *Rollout) remember(object *v1alpha1.CloudSpace, cause string, now time.Time) {
	if r.waiting == nil {
		r.begun, r.waiting, r.served = map[types.UID]Turn{}, map[types.UID]waiter{}, map[string]time.Time{}
	}
	since := now
	if known, ok := r.waiting[object.UID]; ok {
		since = known.since
	}
	r.waiting[object.UID] = waiter{key: client.ObjectKeyFromObject(object), since: since, seen: now, cause: cause}
}

// first is whose turn it is for this cause: of the tenant served the longest ago, the CloudSpace that waits longest. So a tenant that
// changes many of its own, over and over, takes no more turns than any other.
func (r *Rollout) first(cause string, now time.Time) types.UID {
	var first types.UID
	for uid, w := range r.waiting {
		if now.Sub(w.seen).Abs() > turnForgotten {
			delete(r.waiting, uid)
			continue
		}
		if w.cause == cause && (first == "" || r.before(uid, first)) {
			first = uid
		}
	}
	return first
}

func (r *Rollout) before(a, b types.UID) bool {
	left, right := r.waiting[a], r.waiting[b]
	if servedLeft, servedRight := r.served[left.key.Namespace], r.served[right.key.Namespace]; !servedLeft.Equal(servedRight) {
		return servedLeft.Before(servedRight)
	}
	if !left.since.Equal(right.since) {
		return left.since.Before(right.since)
	}
	return a < b
}

// turned lets through a HelmRelease when a turn begins or ends.
type turned struct{ predicate.Funcs }

// Create lets nothing through: what is there already wakes its own CloudSpace.
func (turned) Create(event.CreateEvent) bool { return false }

// Delete lets through a release that had its turn.
func (turned) Delete(e event.DeleteEvent) bool { return len(indexRolling(e.Object)) > 0 }

// Update lets through a release whose turn began or ended.
func (turned) Update(e event.UpdateEvent) bool {
	return len(indexRolling(e.ObjectOld)) != len(indexRolling(e.ObjectNew))
}
