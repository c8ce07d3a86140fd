// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tantilium/cloud-runner/internal/apply"
)

// heldUp is how long something may take to go before it is said what holds it: most goes sooner, and what stands in status changes
// less often.
const heldUp = 30 * time.Second

// waitsFor says what is waited for while an object is being deleted, and, when that takes long, why.
func waitsFor(what string, object client.Object, now time.Time) string {
	message := "waiting for " + what
	since := object.GetDeletionTimestamp()
	if since.IsZero() {
		return message
	}
	// By a clock that is behind it was not asked for yet: rather say too early what holds it than never.
	long := now.Sub(since.Time).Abs() > heldUp
	if release, ok := object.(*helmv2.HelmRelease); ok {
		return waitsForFlux(message, release, long)
	}
	if held := apply.Held(object); held != "" && long {
		return message + ": " + held
	}
	return message
}

// waitsForFlux tells a release that Flux cannot uninstall from one that Flux does not look at. Flux says nothing before it is done.
func waitsForFlux(message string, release *helmv2.HelmRelease, long bool) string {
	ready := apimeta.FindStatusCondition(release.Status.Conditions, meta.ReadyCondition)
	switch {
	case !controllerutil.ContainsFinalizer(release, helmv2.HelmReleaseFinalizer):
		return message + ": " + apply.Held(release)
	case ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == helmv2.UninstallFailedReason:
		return fmt.Sprintf("%s: Flux cannot uninstall it: %s", message, ready.Message)
	case long:
		return message + ": Flux's helm-controller has not uninstalled it, and does not say why: does it run?"
	default:
		return message
	}
}

// whatIs says how an object is called where it is waited for.
func whatIs(object client.Object) string {
	switch object.(type) {
	case *helmv2.HelmRelease:
		return "release " + object.GetName()
	case *corev1.Namespace:
		return "namespace " + object.GetName()
	default:
		return object.GetName()
	}
}
