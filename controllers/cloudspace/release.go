// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"fmt"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// verdict is what a HelmRelease's status amounts to.
type verdict struct {
	state releaseState
	// detail is Flux's own message, where there is one.
	detail string
}

type releaseState string

const (
	releaseReady       releaseState = "Ready"
	releaseInstalling  releaseState = "Installing"
	releaseFailing     releaseState = "Failing"
	releaseChartFailed releaseState = "ChartFailed"
	releaseSuspended   releaseState = "Suspended"
	releaseDeleting    releaseState = "Deleting"
)

// judge says how far Flux is with the release as it is specified now. It trusts nothing that speaks of an earlier spec:
// Flux moves status.observedGeneration only when an action has ended, so a missing or old status means "installing", never
// "failed". Ready counts when the newest release in the history has the wanted chart version and is deployed.
func judge(release *helmv2.HelmRelease, chart *sourcev1.HelmChart, wantVersion string) verdict {
	ready := current(release, meta.ReadyCondition)
	switch {
	case !release.DeletionTimestamp.IsZero():
		return verdict{state: releaseDeleting}
	case release.Spec.Suspend:
		return verdict{state: releaseSuspended}
	case askedAgain(release):
		return verdict{state: releaseInstalling}
	case installed(release, wantVersion) && holds(release, ready):
		return verdict{state: releaseReady}
	case chartBroken(chart):
		return verdict{state: releaseChartFailed, detail: whyBroken(chart).Message}
	case failedAction(ready):
		return verdict{state: releaseFailing, detail: ready.Message}
	case isTrue(current(release, meta.StalledCondition)):
		return verdict{state: releaseFailing, detail: current(release, meta.StalledCondition).Message}
	default:
		return verdict{state: releaseInstalling}
	}
}

// asError is the outcome of the step that waits for a release; part names it for people.
func (v verdict) asError(role string) error {
	part := map[string]string{roleControlPlane: "the control plane", roleFlux: "Flux", roleAdvisor: "the App Advisor"}[role]
	switch v.state {
	case releaseReady:
		return nil
	case releaseFailing:
		return step.Failure(v1alpha1.ReasonInstallFailed, fmt.Sprintf("installing %s failed: %s", part, v.detail))
	case releaseChartFailed:
		return step.Failure(v1alpha1.ReasonChartNotReady, fmt.Sprintf("the chart of %s cannot be fetched: %s", part, v.detail))
	case releaseSuspended:
		return step.Wait(v1alpha1.ReasonInstalling, fmt.Sprintf("the release of %s is suspended", part))
	case releaseDeleting:
		return step.Wait(v1alpha1.ReasonTerminating, fmt.Sprintf("an earlier release of %s is still being deleted", part))
	default:
		return step.Wait(v1alpha1.ReasonInstalling, fmt.Sprintf("installing %s", part))
	}
}

// askedAgain tells whether Flux was asked to try again and has not begun to. Being asked to look whether all is as it should be is
// no new try: what was installed stays installed.
func askedAgain(release *helmv2.HelmRelease) bool {
	request, asked := meta.ReconcileAnnotationValue(release.Annotations)
	return asked && request == release.Annotations[helmv2.ResetRequestAnnotation] && request != release.Status.LastHandledReconcileAt
}

// tryAgain asks Flux to try a release again, and to forget how often it failed.
func tryAgain(release *helmv2.HelmRelease, token string) {
	metav1.SetMetaDataAnnotation(&release.ObjectMeta, meta.ReconcileRequestAnnotation, token)
	metav1.SetMetaDataAnnotation(&release.ObjectMeta, helmv2.ResetRequestAnnotation, token)
}

// installed tells whether Flux was done with this generation and what runs is the wanted version: the newest release in the
// history is deployed.
func installed(release *helmv2.HelmRelease, wantVersion string) bool {
	if release.Status.ObservedGeneration != release.Generation {
		return false
	}
	latest := latestRelease(release)
	return latest != nil && latest.Status == "deployed" && withoutBuild(latest.ChartVersion) == withoutBuild(wantVersion)
}

// holds tells whether what was installed still stands. Flux looks at it now and then with nothing to do; it says Reconciling then,
// and Ready Unknown or False while it has no chart to compare with.
func holds(release *helmv2.HelmRelease, ready *metav1.Condition) bool {
	if ready == nil || isTrue(current(release, meta.StalledCondition)) {
		return false
	}
	return !failedAction(ready) || ready.Reason == helmv2.ArtifactFailedReason
}

// latestRelease is the newest in the history, or nil. An entry that is null is none, whoever wrote it.
func latestRelease(release *helmv2.HelmRelease) (latest *helmv2.Snapshot) {
	for _, entry := range release.Status.History {
		if entry != nil && (latest == nil || entry.Version > latest.Version) {
			latest = entry
		}
	}
	return latest
}

// failedAction tells whether the last Helm action of this generation failed. Flux also says Ready False while it waits for
// the chart: that is no failure.
func failedAction(ready *metav1.Condition) bool {
	if ready == nil || ready.Status != metav1.ConditionFalse {
		return false
	}
	switch ready.Reason {
	case helmv2.InstallFailedReason, helmv2.UpgradeFailedReason, helmv2.RollbackFailedReason, helmv2.UninstallFailedReason,
		helmv2.ArtifactFailedReason, "RESTClientError", "ValuesError", "FactoryError", "StateError", "AccessDenied", "RetriesExceeded":
		return true
	default:
		return false
	}
}

// chartBroken tells whether Flux says of this generation of the chart that it cannot be fetched.
func chartBroken(chart *sourcev1.HelmChart) bool { return whyBroken(chart) != nil }

// whyBroken is what Flux says of a chart that it has not got, or nil. Ready alone does not tell: it is Unknown each time that
// Flux tries again, while the condition that names the failure stays until a try succeeds.
func whyBroken(chart *sourcev1.HelmChart) *metav1.Condition {
	if chart == nil || chart.Status.Artifact != nil {
		return nil
	}
	for _, bad := range []metav1.Condition{
		{Type: sourcev1.FetchFailedCondition, Status: metav1.ConditionTrue},
		{Type: sourcev1.BuildFailedCondition, Status: metav1.ConditionTrue},
		{Type: meta.ReadyCondition, Status: metav1.ConditionFalse},
	} {
		c := apimeta.FindStatusCondition(chart.Status.Conditions, bad.Type)
		if c != nil && c.Status == bad.Status && c.ObservedGeneration == chart.Generation {
			return c
		}
	}
	return nil
}

// chartPause is how often a chart is asked for at most: all CloudSpaces share it, and many may wait for it.
const chartPause = time.Second

// chartAsked tells whether Flux was asked for a chart just now.
func chartAsked(chart *sourcev1.HelmChart, now time.Time) bool {
	request, _ := meta.ReconcileAnnotationValue(chart.Annotations)
	asked, err := time.Parse(time.RFC3339Nano, request)
	return err == nil && now.Sub(asked).Abs() < chartPause
}

// current gives a condition only when it speaks of the generation as it is now.
func current(release *helmv2.HelmRelease, kind string) *metav1.Condition {
	c := apimeta.FindStatusCondition(release.Status.Conditions, kind)
	if c == nil || c.ObservedGeneration != release.Generation {
		return nil
	}
	return c
}

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// withoutBuild drops the build metadata that Flux adds to the version of a chart from some sources.
func withoutBuild(version string) string {
	version, _, _ = strings.Cut(version, "+")
	return version
}
