// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"errors"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	versioninfo "k8s.io/apimachinery/pkg/version"
	clocktesting "k8s.io/utils/clock/testing"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// hostMinor is a host cluster of this minor version; below zero it does not answer.
type hostMinor int

func (h hostMinor) Minor(context.Context) (int, error) {
	if h < 0 {
		return 0, errBoom
	}
	return int(h), nil
}

// offering is a platform with these Kubernetes versions, the first one the default, on a host of v1.36.
func offering(t *testing.T, versions ...string) *Reconciler {
	t.Helper()
	platform := testPlatform(t)
	platform.Kubernetes = nil
	for _, v := range versions {
		platform.Kubernetes = append(platform.Kubernetes, configv1alpha1.KubernetesVersion{Version: v, Etcd: "3.6.8-0", CoreDNS: "1.14.2"})
	}
	return &Reconciler{Platform: platform, Host: hostMinor(36)}
}

// runningWith is a CloudSpace whose control plane was active with one version, proven, and whose release asks for another.
func runningWith(t *testing.T, r *Reconciler, proven, releaseAsksFor string) *scope {
	t.Helper()
	s := grantedScope(testCloudSpace("default"))
	s.object.Status.Timeline = []v1alpha1.PhaseTransition{{Phase: "Active"}}
	s.object.Status.Conditions = []metav1.Condition{{Type: "ControlPlaneReady", Status: metav1.ConditionTrue, Reason: "Succeeded"}}
	s.object.Status.Versions = v1alpha1.CloudSpaceVersions{Kubernetes: proven, VCluster: r.Platform.Charts.VCluster.Version}
	s.observed.controlPlane = releaseWith(t, r, s, releaseAsksFor)
	return s
}

func releaseWith(t *testing.T, r *Reconciler, s *scope, version string) *helmv2.HelmRelease {
	t.Helper()
	values := desiredValues(s.names, s.object.Spec,
		configv1alpha1.KubernetesVersion{Version: version, Etcd: "3.6.8-0", CoreDNS: "1.14.2"}, r.Platform.Sizes["Small"], r.Platform)
	release, err := desiredControlPlane(s, r.Platform, values)
	if err != nil {
		t.Fatal(err)
	}
	release.Annotations = map[string]string{annotationAsked: s.asks()}
	release.Labels = s.owner.Labels()
	return release
}

// The ways from one version to another, by what was proven last and what is asked for.
func TestWhatAControlPlaneBecomesNext(t *testing.T) {
	all := []string{"v1.36.0", "v1.35.3", "v1.35.0", "v1.34.0", "v1.33.0"}
	tests := map[string]struct {
		offered          []string
		proven, release  string
		asked            string
		want             string
		wantHold         bool
		wantShort        string
		wantShortMessage string
	}{
		"nothing changes": {proven: "v1.35.0", release: "v1.35.0", asked: "v1.35.0", want: "v1.35.0"},
		"a patch":         {proven: "v1.35.0", release: "v1.35.0", asked: "v1.35.3", want: "v1.35.3"},
		"back by a patch": {proven: "v1.35.3", release: "v1.35.3", asked: "v1.35.0", want: "v1.35.0"},
		"the next minor":  {proven: "v1.35.0", release: "v1.35.0", asked: "v1.36.0", want: "v1.36.0"},
		"none asked for is the platform's default":    {proven: "v1.35.0", release: "v1.35.0", asked: "", want: "v1.36.0"},
		"back from an upgrade that was not proven":    {proven: "v1.35.0", release: "v1.36.0", asked: "v1.35.0", want: "v1.35.0"},
		"on, while the step before is not proven yet": {proven: "v1.34.0", release: "v1.35.3", asked: "v1.36.0", want: "v1.35.3", wantShort: "Installing", wantShortMessage: "on the way to Kubernetes v1.36.0, with v1.35.3 first"},
		"two minors go by the one between": {
			proven: "v1.34.0", release: "v1.34.0", asked: "v1.36.0", want: "v1.35.3",
			wantShort: "Installing", wantShortMessage: "on the way to Kubernetes v1.36.0, with v1.35.3 first",
		},
		"three minors too": {
			proven: "v1.33.0", release: "v1.33.0", asked: "v1.36.0", want: "v1.34.0",
			wantShort: "Installing", wantShortMessage: "on the way to Kubernetes v1.36.0, with v1.34.0 first",
		},
		"a minor between that is not offered": {
			offered: []string{"v1.36.0", "v1.34.0"}, proven: "v1.34.0", release: "v1.34.0", asked: "v1.36.0", want: "v1.34.0",
			wantShort: "VersionSkew", wantShortMessage: "Kubernetes goes one minor version at a time, and between v1.34.0 and v1.36.0 there is no v1.35 on offer",
		},
		"back by a minor": {
			proven: "v1.36.0", release: "v1.36.0", asked: "v1.35.0", want: "v1.36.0",
			wantShort: "VersionSkew", wantShortMessage: "Kubernetes cannot go back from v1.36.0 to v1.35.0",
		},
		"back, while what runs is not offered any more": {
			offered: []string{"v1.35.0"}, proven: "v1.36.0", release: "v1.36.0", asked: "v1.35.0", wantHold: true,
			wantShort: "VersionSkew", wantShortMessage: "Kubernetes cannot go back from v1.36.0 to v1.35.0",
		},
		"not offered": {
			proven: "v1.35.0", release: "v1.35.0", asked: "v1.30.0", wantHold: true,
			wantShort: "UnsupportedVersion", wantShortMessage: "Kubernetes v1.30.0 is not offered; offered are v1.36.0, v1.35.3, v1.35.0, v1.34.0, v1.33.0",
		},
		"what runs is not offered any more": {
			offered: []string{"v1.36.0"}, proven: "v1.35.0", release: "v1.35.0", asked: "v1.35.0", wantHold: true,
			wantShort: "UnsupportedVersion", wantShortMessage: "Kubernetes v1.35.0 is not offered; offered are v1.36.0",
		},
		"newer than the host": {
			offered: []string{"v1.37.0"}, proven: "v1.36.0", release: "v1.36.0", asked: "v1.37.0", wantHold: true,
			wantShort: "VersionSkew", wantShortMessage: "Kubernetes v1.37.0 is newer than the host cluster's v1.36",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			offered := tt.offered
			if offered == nil {
				offered = all
			}
			r := offering(t, offered...)
			s := runningWith(t, r, tt.proven, tt.release)
			s.object.Spec.KubernetesVersion = tt.asked
			got, err := r.target(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			if got.version.Version != tt.want || got.hold != tt.wantHold {
				t.Errorf("got version %q, hold %v; want %q, %v", got.version.Version, got.hold, tt.want, tt.wantHold)
			}
			reason, message := "", ""
			if got.short != nil {
				reason, message = step.Explain(got.short, "none")
			}
			if diff := cmp.Diff([]string{tt.wantShort, tt.wantShortMessage}, []string{reason, message}); diff != "" {
				t.Errorf("why not more (-want +got):\n%s", diff)
			}
		})
	}
}

// A control plane that never came up has nothing to lose: it gets what is asked for, or the step says why not.
func TestANewControlPlaneGetsAllOrNothing(t *testing.T) {
	tests := map[string]struct {
		host    hostMinor
		asked   string
		cpu     string
		want    string
		wantErr string
	}{
		"the default":                         {host: 36, want: "v1.36.0"},
		"another one that is offered":         {host: 36, asked: "v1.33.0", want: "v1.33.0"},
		"another one than its broken release": {host: 36, asked: "v1.34.0", want: "v1.34.0"},
		"not offered":                         {host: 36, asked: "v1.20.0", wantErr: "UnsupportedVersion"},
		"newer than the host":                 {host: 35, wantErr: "VersionSkew"},
		"three behind the host":               {host: 36, asked: "v1.33.0", want: "v1.33.0"},
		"four behind the host":                {host: 37, asked: "v1.33.0", wantErr: "VersionSkew"},
		"the host does not answer":            {host: -1, wantErr: "ReconcileError"},
		"no room":                             {host: 36, cpu: "100m", wantErr: "ResourcesTooSmall"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := offering(t, "v1.36.0", "v1.34.0", "v1.33.0")
			r.Host = tt.host
			s := grantedScope(testCloudSpace("default"))
			s.observed.controlPlane = releaseWith(t, r, s, "v1.36.9")
			s.object.Spec.KubernetesVersion = tt.asked
			if tt.cpu != "" {
				s.object.Spec.Resources.CPU = resource.MustParse(tt.cpu)
			}
			got, err := r.target(t.Context(), s)
			reason, _ := step.Explain(errOr(err), "ReconcileError")
			switch {
			case tt.wantErr == "" && (err != nil || got.version.Version != tt.want || got.hold || got.short != nil):
				t.Errorf("got %+v and error %v, want %s", got, err, tt.want)
			case tt.wantErr != "" && (err == nil || reason != tt.wantErr):
				t.Errorf("got error %v, want reason %s", err, tt.wantErr)
			}
		})
	}
}

// vCluster is the platform's: it goes on by one minor version, or by patches.
func TestVClusterGoesOneMinorAtATime(t *testing.T) {
	tests := map[string]struct {
		proven, configured string
		wantHold           bool
	}{
		"the same":           {proven: "0.36.1", configured: "0.36.1"},
		"a patch":            {proven: "0.36.0", configured: "0.36.1"},
		"back by a patch":    {proven: "0.36.2", configured: "0.36.1"},
		"the next minor":     {proven: "0.35.4", configured: "0.36.1"},
		"two minors":         {proven: "0.34.4", configured: "0.36.1", wantHold: true},
		"back by a minor":    {proven: "0.37.0", configured: "0.36.1", wantHold: true},
		"nothing was proven": {proven: "", configured: "0.36.1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := offering(t, "v1.36.0")
			s := runningWith(t, r, "v1.36.0", "v1.36.0")
			r.Platform.Charts.VCluster.Version = tt.configured
			s.object.Status.Versions.VCluster = tt.proven
			got, err := r.target(t.Context(), s)
			if err != nil || got.hold != tt.wantHold || (got.short != nil) != tt.wantHold {
				t.Errorf("got %+v and error %v, want hold %v", got, err, tt.wantHold)
			}
		})
	}
}

// discovered is a host cluster that counts how often it is asked.
type discovered struct {
	version string
	err     error
	asked   int
}

func (d *discovered) ServerVersion() (*versioninfo.Info, error) {
	d.asked++
	return &versioninfo.Info{GitVersion: d.version}, d.err
}

func TestTheHostIsAskedForItsVersionNowAndThen(t *testing.T) {
	server := &discovered{version: "v1.36.3+build1"}
	clock := clocktesting.NewFakePassiveClock(noon)
	host := &DiscoveredHost{Client: server, Clock: clock}
	for _, tt := range []struct {
		name      string
		after     time.Duration
		version   string
		err       error
		want      int
		wantAsked int
		wantErr   bool
	}{
		{name: "it does not answer", err: errBoom, wantAsked: 1, wantErr: true},
		{name: "it answers", version: "v1.36.3+build1", want: 36, wantAsked: 2},
		{name: "the answer is kept", version: "v1.37.0", want: 36, wantAsked: 2},
		{name: "it was upgraded, some time ago", after: 10 * time.Minute, version: "v1.37.0", want: 37, wantAsked: 3},
		{name: "the clock went back by far", after: -time.Hour, version: "v1.38.0", want: 38, wantAsked: 4},
		{name: "an answer that makes no sense", after: time.Hour, version: "dev", wantAsked: 5, wantErr: true},
	} {
		server.version, server.err = tt.version, tt.err
		if tt.after != 0 {
			clock.SetTime(clock.Now().Add(tt.after))
		}
		got, err := host.Minor(t.Context())
		if got != tt.want || (err != nil) != tt.wantErr || server.asked != tt.wantAsked {
			t.Errorf("%s: got %d, error %v, asked %d times; want %d, error %v, %d times", tt.name, got, err, server.asked, tt.want, tt.wantErr, tt.wantAsked)
		}
		if tt.err != nil && !errors.Is(err, tt.err) {
			t.Errorf("%s: got error %v, want %v", tt.name, err, tt.err)
		}
	}
}
