// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"maps"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/internal/step"
)

const wantVersion = "0.36.1"

// release is one that Flux has installed: generation 2, all that is said is about generation 2.
func release(alter ...func(*helmv2.HelmRelease)) *helmv2.HelmRelease {
	r := &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{Generation: 2},
		Status: helmv2.HelmReleaseStatus{
			ObservedGeneration: 2,
			Conditions:         []metav1.Condition{says("Ready", "True", "InstallSucceeded", "Helm install succeeded")},
			History:            helmv2.Snapshots{{Version: 1, ChartVersion: wantVersion, Status: "deployed"}},
		},
	}
	for _, a := range alter {
		a(r)
	}
	return r
}

func says(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 2}
}

// with replaces all conditions.
func with(conditions ...metav1.Condition) func(*helmv2.HelmRelease) {
	return func(r *helmv2.HelmRelease) { r.Status.Conditions = conditions }
}

// behind makes status.observedGeneration, which Flux moves last, stay behind.
func behind(r *helmv2.HelmRelease) { r.Status.ObservedGeneration = 1 }

func old(c metav1.Condition) metav1.Condition {
	c.ObservedGeneration = 1
	return c
}

func chart(alter ...func(*sourcev1.HelmChart)) *sourcev1.HelmChart {
	c := &sourcev1.HelmChart{
		ObjectMeta: metav1.ObjectMeta{Generation: 1},
		Status: sourcev1.HelmChartStatus{
			Artifact:   &meta.Artifact{},
			Conditions: []metav1.Condition{{Type: "Ready", Status: "True", ObservedGeneration: 1}},
		},
	}
	for _, a := range alter {
		a(c)
	}
	return c
}

func notFetched(c *sourcev1.HelmChart) {
	c.Status.Artifact = nil
	c.Status.Conditions[0] = metav1.Condition{Type: "Ready", Status: "False", Reason: "ChartPullError", Message: "no such host", ObservedGeneration: 1}
}

// triedAgain is how a chart that could not be fetched looks while Flux tries once more.
func triedAgain(c *sourcev1.HelmChart) {
	c.Status.Artifact = nil
	c.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: "Unknown", Reason: "Progressing", Message: "building artifact", ObservedGeneration: 1},
		{Type: "FetchFailed", Status: "True", Reason: "ChartPullError", Message: "no such host", ObservedGeneration: 1},
	}
}

func TestJudge(t *testing.T) {
	progressing := says("Reconciling", "True", "Progressing", "Running 'install' action")
	failed := says("Ready", "False", "InstallFailed", "Helm install failed: timed out")
	tests := map[string]struct {
		reason  string
		release *helmv2.HelmRelease
		chart   *sourcev1.HelmChart
		want    verdict
	}{
		"installed": {release: release(), want: verdict{state: releaseReady}},
		"installed, Flux looks at it again": {
			reason:  "it sets Reconciling each time, with nothing to do",
			release: release(with(says("Ready", "True", "InstallSucceeded", ""), says("Reconciling", "True", "Progressing", "Fulfilling prerequisites"))),
			want:    verdict{state: releaseReady},
		},
		"installed from an OCI repository": {
			reason:  "Flux adds the digest to the version",
			release: release(func(r *helmv2.HelmRelease) { r.Status.History[0].ChartVersion = wantVersion + "+abc4d8b4f8b3" }),
			want:    verdict{state: releaseReady},
		},
		"made just now": {release: release(with(), behind, func(r *helmv2.HelmRelease) { r.Status.History = nil }), want: verdict{state: releaseInstalling}},
		"changed just now": {
			reason:  "all that is said is about the spec before",
			release: release(func(r *helmv2.HelmRelease) { r.Generation = 3 }), want: verdict{state: releaseInstalling},
		},
		"changed after a failure": {
			reason:  "the failure was that of the spec before",
			release: release(with(old(failed), old(says("Stalled", "True", "RetriesExceeded", "x"))), behind), want: verdict{state: releaseInstalling},
		},
		"Ready of this spec, while Flux has not ended": {
			release: release(with(says("Ready", "True", "UpgradeSucceeded", "")), behind), want: verdict{state: releaseInstalling},
		},
		"Ready, and another version runs": {
			release: release(func(r *helmv2.HelmRelease) { r.Status.History[0].ChartVersion = "0.35.0" }), want: verdict{state: releaseInstalling},
		},
		"Ready, and the newest release failed": {
			release: release(func(r *helmv2.HelmRelease) { r.Status.History[0].Status = "failed" }), want: verdict{state: releaseInstalling},
		},
		"Ready, and nothing is in the history": {
			release: release(func(r *helmv2.HelmRelease) { r.Status.History = nil }), want: verdict{state: releaseInstalling},
		},
		"installing": {release: release(with(says("Ready", "Unknown", "Progressing", "Running"), progressing), behind), want: verdict{state: releaseInstalling}},
		"waiting for the chart": {
			reason:  "Ready is False, and nothing has failed",
			release: release(with(says("Ready", "False", "SourceNotReady", "HelmChart 'a/b' is not ready"), progressing), behind), chart: chart(func(c *sourcev1.HelmChart) { c.Status = sourcev1.HelmChartStatus{} }),
			want: verdict{state: releaseInstalling},
		},
		"waiting for a dependency": {
			release: release(with(says("Ready", "False", "DependencyNotReady", "x"), progressing), behind), want: verdict{state: releaseInstalling},
		},
		"failed, tried again": {
			reason:  "Flux' own message is the detail",
			release: release(with(failed, says("Reconciling", "True", "ProgressingWithRetry", "retrying after 30s")), behind),
			want:    verdict{state: releaseFailing, detail: "Helm install failed: timed out"},
		},
		"upgrade failed":      {release: release(with(says("Ready", "False", "UpgradeFailed", "x")), behind), want: verdict{state: releaseFailing, detail: "x"}},
		"values do not merge": {release: release(with(says("Ready", "False", "ValuesError", "x")), behind), want: verdict{state: releaseFailing, detail: "x"}},
		"its cluster cannot be reached": {
			release: release(with(says("Ready", "False", "RESTClientError", "x")), behind), want: verdict{state: releaseFailing, detail: "x"},
		},
		"stalled": {
			release: release(with(says("Ready", "False", "RetriesExceeded", "y"), says("Stalled", "True", "RetriesExceeded", "Failed to install after 1 attempt(s)"))),
			reason:  "what the action failed with says more than how often it was tried",
			want:    verdict{state: releaseFailing, detail: "y"},
		},
		"stalled without having acted": {
			release: release(with(says("Ready", "Unknown", "Progressing", "y"), says("Stalled", "True", "AccessDenied", "not allowed"))),
			want:    verdict{state: releaseFailing, detail: "not allowed"},
		},
		"suspended": {release: release(func(r *helmv2.HelmRelease) { r.Spec.Suspend = true }), want: verdict{state: releaseSuspended}},
		"being deleted": {
			reason: "whatever it says of itself",
			release: release(func(r *helmv2.HelmRelease) {
				r.DeletionTimestamp, r.Spec.Suspend = &metav1.Time{}, true
				*r.DeletionTimestamp = metav1.NewTime(noon)
			}),
			want: verdict{state: releaseDeleting},
		},
		"the chart cannot be fetched": {
			release: release(with(says("Ready", "False", "SourceNotReady", "x"), progressing), behind), chart: chart(notFetched),
			want: verdict{state: releaseChartFailed, detail: "no such host"},
		},
		"the chart could not be fetched in an earlier version": {
			release: release(with(progressing), behind), chart: chart(notFetched, func(c *sourcev1.HelmChart) { c.Generation = 2 }), want: verdict{state: releaseInstalling},
		},
		"the chart cannot be fetched again, and the old one is kept": {
			release: release(), chart: chart(notFetched, func(c *sourcev1.HelmChart) { c.Status.Artifact = &meta.Artifact{} }), want: verdict{state: releaseReady},
		},
		"it corrects drift": {
			reason:  "what is installed stays installed",
			release: release(with(says("Ready", "Unknown", "Progressing", "correcting cluster drift"), progressing)), want: verdict{state: releaseReady},
		},
		"the chart is there": {release: release(), chart: chart(), want: verdict{state: releaseReady}},
		"the chart is lost, and what it brought runs": {
			reason:  "what runs does not need it",
			release: release(), chart: chart(notFetched), want: verdict{state: releaseReady},
		},
		"the chart is lost, and Flux wants to compare": {
			release: release(with(says("Ready", "False", "SourceNotReady", "x"), progressing)), chart: chart(notFetched), want: verdict{state: releaseReady},
		},
		"the chart's file is lost, and Flux wants to compare": {
			release: release(with(says("Ready", "False", "ArtifactFailed", "x"), progressing)), chart: chart(), want: verdict{state: releaseReady},
		},
		"Flux compares again after the chart was lost": {
			release: release(with(says("Ready", "Unknown", "Progressing", "reconciliation in progress"), progressing)), chart: chart(), want: verdict{state: releaseReady},
		},
		"the chart is lost before a changed spec was installed": {
			release: release(with(says("Ready", "False", "SourceNotReady", "x"), progressing), behind), chart: chart(notFetched),
			want: verdict{state: releaseChartFailed, detail: "no such host"},
		},
		"what was installed is broken by a later action": {
			release: release(with(says("Ready", "False", "UpgradeFailed", "x"))), want: verdict{state: releaseFailing, detail: "x"},
		},
		"the chart is tried again": {
			reason:  "Flux says Unknown during each try",
			release: release(with(progressing), behind), chart: chart(triedAgain), want: verdict{state: releaseChartFailed, detail: "no such host"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := judge(tt.release, tt.chart, wantVersion); got != tt.want {
				t.Errorf("%s: got %+v, want %+v", tt.reason, got, tt.want)
			}
		})
	}
}

func TestARequestToFluxIsOpenUntilFluxHasBegun(t *testing.T) {
	const key, reset = "reconcile.fluxcd.io/requestedAt", "reconcile.fluxcd.io/resetAt"
	tests := map[string]struct {
		annotations map[string]string
		handled     string
		want        bool
	}{
		"nobody asked":                   {},
		"nobody asks any more":           {handled: "1"},
		"it has not begun":               {annotations: map[string]string{key: "1", reset: "1"}, want: true},
		"it has begun":                   {annotations: map[string]string{key: "1", reset: "1"}, handled: "1"},
		"it is asked again":              {annotations: map[string]string{key: "2", reset: "2"}, handled: "1", want: true},
		"only to look":                   {annotations: map[string]string{key: "1"}},
		"only to look, after a try":      {annotations: map[string]string{key: "2", reset: "1"}, handled: "1"},
		"only to forget how often":       {annotations: map[string]string{"reconcile.fluxcd.io/resetAt": "1"}},
		"an empty request that it knows": {annotations: map[string]string{key: ""}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := release(func(r *helmv2.HelmRelease) {
				r.Annotations, r.Status.LastHandledReconcileAt = tt.annotations, tt.handled
			})
			if got := askedAgain(r); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// Flux resets its count only when both requests have the same value, and begins anew only when it is another than before.
func TestTryAgainAsksFluxToBeginAnewAndToForget(t *testing.T) {
	tests := map[string]map[string]string{
		"for the first time":     nil,
		"after an earlier try":   {"reconcile.fluxcd.io/requestedAt": "1", "reconcile.fluxcd.io/resetAt": "1"},
		"after others asked too": {"reconcile.fluxcd.io/requestedAt": "theirs"},
	}
	for name, before := range tests {
		t.Run(name, func(t *testing.T) {
			failed := release(with(says("Ready", "False", "InstallFailed", "timed out")), func(r *helmv2.HelmRelease) {
				r.Annotations = maps.Clone(before)
				r.Status.LastHandledReconcileAt = before["reconcile.fluxcd.io/requestedAt"]
			})
			if got := judge(failed, nil, wantVersion); got.state != releaseFailing {
				t.Fatalf("before it is %s, want Failing", got.state)
			}
			tryAgain(failed, "2")
			want := map[string]string{"reconcile.fluxcd.io/requestedAt": "2", "reconcile.fluxcd.io/resetAt": "2"}
			if diff := cmp.Diff(want, failed.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if got := judge(failed, nil, wantVersion); got.state != releaseInstalling {
				t.Errorf("asked again it is %s, want Installing: what it says is of the try before", got.state)
			}
			failed.Status.LastHandledReconcileAt = "2"
			if got := judge(failed, nil, wantVersion); got.state != releaseFailing {
				t.Errorf("once Flux has begun it is %s, want what Flux says", got.state)
			}
		})
	}
}

func TestWhatAVerdictMeansForItsStep(t *testing.T) {
	tests := map[string]struct {
		verdict                 verdict
		role                    string
		wantReason, wantMessage string
	}{
		"ready":         {verdict: verdict{state: releaseReady}, role: roleFlux},
		"installing":    {verdict{state: releaseInstalling}, roleControlPlane, "Installing", "installing the control plane"},
		"failing":       {verdict{state: releaseFailing, detail: "timed out"}, roleFlux, "InstallFailed", "installing Flux failed: timed out"},
		"no chart":      {verdict{state: releaseChartFailed, detail: "no such host"}, roleAdvisor, "ChartNotReady", "the chart of the App Advisor cannot be fetched: no such host"},
		"suspended":     {verdict{state: releaseSuspended}, roleFlux, "Installing", "the release of Flux is suspended"},
		"being deleted": {verdict{state: releaseDeleting}, roleControlPlane, "Terminating", "an earlier release of the control plane is still being deleted"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := tt.verdict.asError(tt.role)
			if tt.wantReason == "" {
				if err != nil {
					t.Errorf("got %v, want none", err)
				}
				return
			}
			if failed := tt.wantReason == "InstallFailed" || tt.wantReason == "ChartNotReady"; step.Failed(err) != failed {
				t.Errorf("has it gone wrong: %v, want %v", step.Failed(err), failed)
			}
			if reason, message := step.Explain(errOr(err), ""); step.Class(err) != "Wait" || reason != tt.wantReason || message != tt.wantMessage {
				t.Errorf("got %s %q: %q, want to wait with %q: %q", step.Class(err), reason, message, tt.wantReason, tt.wantMessage)
			}
		})
	}
}

func TestChartTurnedLetsThroughWhatChangesTheJudgement(t *testing.T) {
	fetched, broken, changed := chart(), chart(notFetched), chart(func(c *sourcev1.HelmChart) { c.Generation = 2 })
	tests := map[string]struct {
		before, after *sourcev1.HelmChart
		want          bool
	}{
		"nothing that matters":    {fetched, fetched, false},
		"it cannot be fetched":    {fetched, broken, true},
		"it can be fetched again": {broken, fetched, true},
		"it is tried again":       {broken, chart(triedAgain), false},
		"its spec was altered":    {fetched, changed, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := (chartTurned{}).Update(updateOf(tt.before, tt.after)); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestAChartThatManyWaitForIsAskedForOnceASecond(t *testing.T) {
	const key = "reconcile.fluxcd.io/requestedAt"
	tests := map[string]struct {
		request string
		want    bool
	}{
		"never":                        {},
		"by another CloudSpace, now":   {noon.Add(-100 * time.Millisecond).Format(time.RFC3339Nano), true},
		"a second ago":                 {noon.Add(-time.Second).Format(time.RFC3339Nano), false},
		"by a person":                  {"now", false},
		"by a clock that is far ahead": {noon.Add(time.Hour).Format(time.RFC3339Nano), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := chart(notFetched, func(c *sourcev1.HelmChart) { c.Annotations = map[string]string{key: tt.request} })
			if got := chartAsked(c, noon); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
