// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
)

// Why a release does not get on by itself.
const (
	// stuckLocked is one that Helm holds for one of its actions that nobody carries out any more.
	stuckLocked = "Locked"
	// stuckExhausted is one that Flux has given up.
	stuckExhausted = "Exhausted"
	// stuckFailed is any other that failed.
	stuckFailed = "Failed"
)

// stuckBy says why a failing release does not get on by itself. Flux itself breaks Helm's locks, which then counts as a failure.
func stuckBy(release *helmv2.HelmRelease) string {
	released := apimeta.FindStatusCondition(release.Status.Conditions, helmv2.ReleasedCondition)
	switch {
	case released != nil && released.Reason == "PendingRelease":
		return stuckLocked
	case apimeta.IsStatusConditionTrue(release.Status.Conditions, meta.StalledCondition):
		return stuckExhausted
	default:
		return stuckFailed
	}
}

// tellMended tells that Flux was made to try a release again.
func (r *Reconciler) tellMended(s *scope, role string, release *helmv2.HelmRelease) {
	cause := stuckBy(release)
	mended.WithLabelValues(role, cause).Inc()
	why := map[string]string{
		stuckLocked:    "was locked by an action of Helm that had ended",
		stuckExhausted: "had been given up by Flux",
		stuckFailed:    "had failed",
	}[cause]
	r.event(s.object, corev1.EventTypeNormal, eventReleaseMended, "release "+release.Name+" "+why+": Flux tries it again")
}
