// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/conditions/conditionstest"
	"github.com/tantilium/cloud-runner/internal/retry"
	"github.com/tantilium/cloud-runner/internal/step"
)

// moment is one pass in the life of a CloudSpace: when it is, what happened, and what stops it.
type moment struct {
	at       time.Duration
	happened string
	step     string
	err      error
	// advisor is the error of the step that does not count for Ready.
	advisor error
	change  func(*scope)
}

// The lives of CloudSpaces as people see them in status, told as stories: read the golden file to see what each moment shows.
func TestLifecycle(t *testing.T) {
	wait, failure := step.Wait, step.Failure
	lives := []struct {
		name           string
		withoutAdvisor bool
		moments        []moment
	}{
		{"created, active, an outage, recovered, deleted", false, []moment{
			{at: 0, happened: "made before its Tenant", step: "QuotaReserved", err: wait("TenantNotFound", "waiting for Tenant alice-default")},
			{at: 2 * time.Second, happened: "the Tenant is there", step: "PoliciesApplied", err: wait("WaitingForQuota", "waiting for the quota of the host namespace to be enforced")},
			{at: 3 * time.Second, happened: "the quota is enforced", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane")},
			{at: 60 * time.Second, happened: "the control plane answers", step: "KubeconfigReady", err: wait("WaitingForKubeconfig", "waiting for the control plane to write its kubeconfig")},
			{at: 61 * time.Second, happened: "the kubeconfig is stored", step: "FluxReady", err: wait("Installing", "installing Flux"), change: store},
			{at: 90 * time.Second, happened: "Flux runs", advisor: wait("Installing", "installing the App Advisor")},
			{at: 95 * time.Second, happened: "the App Advisor runs"},
			{at: time.Hour, happened: "etcd is gone", step: "ControlPlaneReady", err: wait("Starting", "waiting for etcd of the control plane")},
			{at: time.Hour + 16*time.Minute, happened: "and is not back by the deadline", step: "ControlPlaneReady", err: wait("Starting", "waiting for etcd of the control plane")},
			{at: 2 * time.Hour, happened: "etcd is back"},
			{at: 3 * time.Hour, happened: "deleted", change: deleted("ReleaseInner", "waiting for release alice-default-flux")},
			{at: 3*time.Hour + 5*time.Second, happened: "nothing is left inside", change: deleted("RemoveNamespace", "waiting for the host namespace")},
		}},
		{"created, somebody else's namespace in the way, mended", false, []moment{
			{at: 0, happened: "the namespace of its name is somebody else's", step: "NamespaceReady", err: step.Terminal("NotOurs", "Namespace vcluster-alice-default exists and was not made for this object; it is left alone")},
			{at: time.Minute, happened: "the namespace is gone", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane")},
			{at: 2 * time.Minute, happened: "everything is proven", change: store},
		}},
		{"created, the control plane does not come up in time, then does", false, []moment{
			{at: 0, happened: "installing", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane")},
			{at: 15*time.Minute - time.Second, happened: "a second before the deadline", step: "ControlPlaneReady", err: failure("InstallFailed", "installing the control plane failed: timed out")},
			{at: 15 * time.Minute, happened: "the deadline", step: "ControlPlaneReady", err: failure("InstallFailed", "installing the control plane failed: timed out")},
			{at: 16 * time.Minute, happened: "a call fails", step: "ControlPlaneReady", err: errBoom},
			{at: 20 * time.Minute, happened: "it is up after all", step: "FluxReady", err: wait("Installing", "installing Flux"), change: store},
			{at: 21 * time.Minute, happened: "everything is proven"},
		}},
		{"fails, is tried again by itself and on demand", false, []moment{
			{at: 0, happened: "installing", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane")},
			{at: time.Second, happened: "it fails", step: "ControlPlaneReady", err: failure("InstallFailed", "installing the control plane failed: no")},
			{at: 2 * time.Second, happened: "an event before the next try", step: "ControlPlaneReady", err: failure("InstallFailed", "installing the control plane failed: no")},
			{at: 10 * time.Second, happened: "the second try has begun", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane")},
			{at: 11 * time.Second, happened: "it fails too", step: "ControlPlaneReady", err: failure("InstallFailed", "installing the control plane failed: no")},
			{at: 16 * time.Minute, happened: "the deadline has passed", step: "ControlPlaneReady", err: failure("InstallFailed", "installing the control plane failed: no")},
			{at: 17 * time.Minute, happened: "a retry is asked for", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane"), change: ask("now")},
			{at: 18 * time.Minute, happened: "it fails again", step: "ControlPlaneReady", err: failure("InstallFailed", "installing the control plane failed: no")},
			{at: 19 * time.Minute, happened: "the same request stands there still", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane"), change: ask("now")},
			{at: 20 * time.Minute, happened: "it works", change: store},
		}},
		{"on a platform without an App Advisor", true, []moment{
			{at: 0, happened: "installing", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane")},
			{at: time.Minute, happened: "everything is proven", change: store},
		}},
		{"asks for what is not offered, then for less", false, []moment{
			{at: 0, happened: "an unknown version", step: "ControlPlaneReady", err: step.Terminal("UnsupportedVersion", "Kubernetes v1.20.0 is not offered; offered are v1.36.0, v1.35.0")},
			{at: time.Minute, happened: "the spec is changed", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane"), change: func(s *scope) { s.object.Generation++ }},
		}},
		{"active, suspended, resumed", true, []moment{
			{at: 0, happened: "everything is proven", change: store},
			{at: time.Hour, happened: "it is to be suspended", step: "ControlPlaneReady", err: wait("CloudSpaceSuspended", "being suspended: waiting for etcd of the control plane to end"), change: func(s *scope) { s.object.Generation++ }},
			{at: time.Hour + time.Minute, happened: "nothing of it runs", step: "ControlPlaneReady", err: step.Rest("CloudSpaceSuspended", "suspended: neither control plane nor workloads run")},
			{at: 30 * 24 * time.Hour, happened: "a month later", step: "ControlPlaneReady", err: step.Rest("CloudSpaceSuspended", "suspended: neither control plane nor workloads run")},
			{at: 31 * 24 * time.Hour, happened: "it is resumed", step: "ControlPlaneReady", err: wait("Starting", "waiting for etcd of the control plane"), change: func(s *scope) { s.object.Generation++ }},
			{at: 31*24*time.Hour + time.Minute, happened: "it runs again"},
		}},
		{"active, changed by its tenant and by the platform", true, []moment{
			{at: 0, happened: "everything is proven", change: store},
			{at: time.Hour, happened: "a larger size is asked for, and others have their turn", step: "UpToDate", err: wait("WaitingForTurn", "the change of the control plane waits for its turn"), change: func(s *scope) { s.object.Generation++ }},
			{at: time.Hour + time.Minute, happened: "its turn", step: "ControlPlaneReady", err: wait("Installing", "installing the control plane")},
			{at: time.Hour + 2*time.Minute, happened: "the control plane was changed"},
			{at: 2 * time.Hour, happened: "a version is asked for that cannot be", step: "UpToDate", err: step.Terminal("VersionSkew", "Kubernetes cannot go back from v1.36.0 to v1.35.0"), change: func(s *scope) { s.object.Generation++ }},
			{at: 3 * time.Hour, happened: "and is taken back", change: func(s *scope) { s.object.Generation++ }},
			{at: 4 * time.Hour, happened: "the platform has another vCluster, and others have their turn", step: "UpToDate", err: step.Advisory(wait("WaitingForTurn", "the change of the control plane waits for its turn"))},
			{at: 5 * time.Hour, happened: "it failed for another one", step: "UpToDate", err: step.Advisory(wait("RolloutStopped", "a change of the platform was stopped"))},
			{at: 6 * time.Hour, happened: "it goes on, and is done"},
		}},
	}
	var story strings.Builder
	for _, life := range lives {
		fmt.Fprintf(&story, "# %s\n\n", life.name)
		object := testCloudSpace("default")
		r := &Reconciler{Platform: testPlatform(t)}
		if !life.withoutAdvisor {
			r.Platform.Charts.Advisor = &configv1alpha1.Chart{Name: "app-advisor", Version: "1.0.0"}
		}
		for _, m := range life.moments {
			live(t, r, object, m)
			tell(&story, object, m)
			if err := conditionstest.Check(t.Context(), object); err != nil {
				t.Errorf("%s, %s: %v", life.name, m.happened, err)
			}
		}
	}
	compareGolden(t, "lifecycle.golden.txt", []byte(story.String()))
}

// live makes one pass, and sees that a second one would change nothing.
func live(t *testing.T, r *Reconciler, object *v1alpha1.CloudSpace, m moment) {
	t.Helper()
	s := grantedScope(object)
	s.backoff = retry.Backoff{Base: 5 * time.Second, Max: 5 * time.Minute}
	if m.change != nil {
		m.change(s)
	}
	if !object.DeletionTimestamp.IsZero() {
		return
	}
	errs := map[string]error{}
	if m.step != "" {
		errs[m.step] = m.err
	}
	if m.advisor != nil {
		errs["AdvisorReady"] = m.advisor
	}
	made := outcomes(t, r, errs)
	object.Status = newStatus(s, made, noon.Add(m.at))
	if diff := cmp.Diff(object.Status, newStatus(s, made, noon.Add(m.at))); diff != "" {
		t.Errorf("%s: a second pass would write again:\n%s", m.happened, diff)
	}
}

func ask(request string) func(*scope) {
	return func(s *scope) {
		s.object.Annotations = map[string]string{"tenancy.kubeopera.io/retry-requested": request}
	}
}

func store(s *scope) {
	s.observed.credentials, s.observed.kubeconfig = &credentials{server: "https://example.com", expires: expires}, ownSecret(s)
}

// deleted makes a pass of taking down.
func deleted(waits, message string) func(*scope) {
	return func(s *scope) {
		at := noon.Add(3 * time.Hour)
		s.object.DeletionTimestamp = &metav1.Time{Time: at}
		var made []step.Outcome
		for _, name := range []string{"ReleaseInner", "ReleaseControlPlane", "RemoveKubeconfig", "RemoveNamespace"} {
			o := step.Outcome{Proves: name, Attempted: true}
			if name == waits {
				o.Err = step.Wait("Remaining", message)
				made = append(made, o)
				break
			}
			made = append(made, o)
		}
		s.object.Status = deletingStatus(s, made, at)
	}
}

// tell writes down what a person sees.
func tell(story *strings.Builder, object *v1alpha1.CloudSpace, m moment) {
	fmt.Fprintf(story, "+%s: %s\n    phase %s\n", m.at, m.happened, object.Status.Phase)
	for _, c := range object.Status.Conditions {
		line := fmt.Sprintf("    %-18s %-8s %-22s since +%-9s %s", c.Type, c.Status, c.Reason, c.LastTransitionTime.Sub(noon), c.Message)
		story.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for _, d := range object.Status.Deletion {
		fmt.Fprintf(story, "    deletion %-20s done %v %s\n", d.Step, d.Done, d.Message)
	}
	if retry := object.Status.Retry; retry.Attempts > 0 {
		fmt.Fprintf(story, "    retry %d attempts, %s, next %s\n", retry.Attempts, retry.LastError.Reason, nextTry(retry))
	}
	var timeline []string
	for _, entry := range object.Status.Timeline {
		timeline = append(timeline, fmt.Sprintf("%s +%s", entry.Phase, entry.Time.Sub(noon)))
	}
	fmt.Fprintf(story, "    timeline %s\n\n", strings.Join(timeline, ", "))
}

func nextTry(retry v1alpha1.RetryStatus) string {
	if retry.NextRetryTime == nil {
		return "now"
	}
	return "+" + retry.NextRetryTime.Sub(noon).Round(time.Second).String()
}
