// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/conditions/conditionstest"
	"github.com/tantilium/cloud-runner/internal/quota"
	"github.com/tantilium/cloud-runner/internal/step"
)

// moment is one pass in the life of a Tenant: when it is, what happened, what stops it, and the default CloudSpace then. With a
// CloudSpace and no step named, the step that follows it says what stops the pass.
type moment struct {
	at         time.Duration
	happened   string
	step       string
	err        error
	cloudSpace *v1alpha1.CloudSpace
	quota      *v1alpha1.TenantQuota
	delete     bool
}

// The lives of Tenants as people see them in status, told as stories: read the golden file to see what each moment shows.
func TestLifecycle(t *testing.T) {
	onItsWay := func(phase v1alpha1.CloudSpacePhase, reason, message string) *v1alpha1.CloudSpace {
		return following(phase, says("Ready", "False", reason, message), says("Reconciling", "True", "Progressing", message))
	}
	active := following("Active", says("Ready", "True", "Provisioned", ""))
	lives := []struct {
		name    string
		moments []moment
	}{
		{"created, ready, an outage, recovered, deleted", []moment{
			{at: 0, happened: "the first pass makes the default CloudSpace", quota: ledger("16", "0", "16"), cloudSpace: following("")},
			{at: time.Second, happened: "it is looked at", quota: ledger("16", "2", "14"), cloudSpace: onItsWay("Provisioning", "WaitingForQuota", "waiting for the quota of the host namespace to be enforced")},
			{at: 10 * time.Second, happened: "its control plane is installed", quota: ledger("16", "2", "14"), cloudSpace: onItsWay("Provisioning", "Installing", "installing the control plane")},
			{at: 60 * time.Second, happened: "Flux is installed in it", quota: ledger("16", "2", "14"), cloudSpace: onItsWay("InstallingFlux", "Installing", "installing Flux")},
			{at: 90 * time.Second, happened: "it is active", quota: ledger("16", "2", "14"), step: "KubeconfigReady", err: step.Wait("WaitingForKubeconfig", "waiting for the kubeconfig of the default CloudSpace"), cloudSpace: active},
			{at: 91 * time.Second, happened: "the kubeconfig is copied", quota: ledger("16", "2", "14"), cloudSpace: active},
			{at: time.Hour, happened: "its etcd is gone", quota: ledger("16", "2", "14"), cloudSpace: onItsWay("Active", "Degraded", "waiting for etcd of the control plane")},
			{at: 2 * time.Hour, happened: "its etcd is back, and it was made larger", quota: ledger("16", "6", "10"), cloudSpace: active},
			{at: 3 * time.Hour, happened: "deleted", delete: true, quota: ledger("16", "2", "14"), step: "RemoveCloudSpaces", err: step.Wait("Remaining", "waiting for 1 CloudSpaces to be deleted, default among them"), cloudSpace: following("Deleting")},
			{at: 3*time.Hour + time.Minute, happened: "no CloudSpace is left", delete: true, quota: ledger("16", "0", "16"), step: "RemoveNamespace", err: step.Wait("Remaining", "waiting for the tenant's namespace")},
		}},
		{"created, the default CloudSpace cannot be made, mended", []moment{
			{at: 0, happened: "the template is refused", step: "CloudSpaceReady", err: step.Terminal("InvalidTemplate", "the default CloudSpace cannot be made like its template: no")},
			{at: time.Minute, happened: "the template is changed", cloudSpace: onItsWay("Provisioning", "Installing", "installing the control plane")},
			{at: 2 * time.Minute, happened: "it fails", cloudSpace: following("Failed", says("Ready", "False", "InstallFailed", "x"), says("Stalled", "True", "InstallFailed", "timed out"))},
			{at: 3 * time.Minute, happened: "it recovers", cloudSpace: active},
		}},
		{"created, somebody else's namespace in the way", []moment{
			{at: 0, happened: "the first pass", step: "NamespaceReady", err: step.Terminal("NotOurs", "Namespace tenant-alice-default exists and was not made for this object; it is left alone")},
			{at: time.Minute, happened: "a call fails", step: "NamespaceReady", err: errBoom},
		}},
	}
	var story strings.Builder
	for _, life := range lives {
		fmt.Fprintf(&story, "# %s\n\n", life.name)
		object := testTenant()
		for _, m := range life.moments {
			live(t, object, m)
			tell(&story, object, m)
			if err := conditionstest.Check(t.Context(), object); err != nil {
				t.Errorf("%s, %s: %v", life.name, m.happened, err)
			}
		}
	}
	compareGolden(t, "lifecycle.golden.txt", []byte(story.String()))
}

// live makes one pass, and sees that a second one would change nothing.
func live(t *testing.T, object *v1alpha1.Tenant, m moment) {
	t.Helper()
	s := testScope(object)
	s.observed.quota = m.quota
	if m.cloudSpace != nil {
		s.observed.cloudSpace, s.observed.cloudSpaces = m.cloudSpace, []v1alpha1.CloudSpace{*m.cloudSpace}
		s.observed.namespace, s.observed.kubeconfig = ownNamespace(s), ownSecret(s)
	}
	pass := func() v1alpha1.TenantStatus {
		if m.delete {
			return deletingStatus(s, []step.Outcome{{Proves: m.step, Attempted: true, Err: m.err}}, noon.Add(m.at))
		}
		stops, err := m.step, m.err
		if stops == "" && m.cloudSpace != nil {
			if err = follow(m.cloudSpace); err != nil {
				stops = "CloudSpaceReady"
			}
		}
		return newStatus(s, outcomes(t, stops, err), noon.Add(m.at))
	}
	if m.delete {
		object.DeletionTimestamp = &metav1.Time{Time: noon.Add(m.at)}
	}
	object.Status = pass()
	if diff := cmp.Diff(object.Status, pass()); diff != "" {
		t.Errorf("%s: a second pass would write again:\n%s", m.happened, diff)
	}
}

// tell writes down what a person sees.
func tell(story *strings.Builder, object *v1alpha1.Tenant, m moment) {
	counts := object.Status.CloudSpaces
	fmt.Fprintf(story, "+%s: %s\n    phase %s, %d of %d CloudSpaces active\n", m.at, m.happened, object.Status.Phase, counts.Active, counts.Total)
	if q := object.Status.Quota; q.Hard != nil {
		fmt.Fprintf(story, "    %s reserved of %s, free %s\n", quota.Text(q.Reserved), quota.Text(q.Hard), quota.Text(q.Free))
	}
	for _, c := range object.Status.Conditions {
		line := fmt.Sprintf("    %-16s %-8s %-20s since +%-9s %s", c.Type, c.Status, c.Reason, c.LastTransitionTime.Sub(noon), c.Message)
		story.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	var timeline []string
	for _, entry := range object.Status.Timeline {
		timeline = append(timeline, fmt.Sprintf("%s +%s", entry.Phase, entry.Time.Sub(noon)))
	}
	fmt.Fprintf(story, "    timeline %s\n\n", strings.Join(timeline, ", "))
}
