// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// oldestBehindHost is how many minor versions a CloudSpace may be behind the host cluster, as a kubelet may be behind its API
// server: https://kubernetes.io/releases/version-skew-policy/.
const oldestBehindHost = 3

// target is what a control plane is to become in this pass.
type target struct {
	version configv1alpha1.KubernetesVersion
	size    configv1alpha1.Size
	// hold leaves the control plane as it is.
	hold bool
	// short says why that is less than what is asked for; nil when it is all.
	short error
}

// target finds what the control plane is to become. A new one must get all that is asked for. One that runs goes on as it is
// when what is asked for cannot be.
func (r *Reconciler) target(ctx context.Context, s *scope) (target, error) {
	version, size, err := r.offered(s.object.Spec)
	if err == nil {
		err = s.hasRoom(size, r.Platform.LimitFactors)
	}
	if err == nil {
		err = r.admitEndpoint(ctx, s)
	}
	if err == nil {
		err = r.goesWithHost(ctx, s, version)
	}
	if !s.established() {
		return target{version: version, size: size}, err
	}
	if err == nil {
		err = r.vclusterFollows(s)
	}
	if class := step.Class(err); class == "Terminal" || class == "Wait" {
		return target{hold: true, short: err}, nil
	}
	if err != nil {
		return target{}, err
	}
	return r.oneMinorAtATime(s, version, size), nil
}

// without holds a control plane that was up while something is lacking that it would need to become another.
func (t target) without(lacks error) target {
	if lacks == nil {
		return t
	}
	t.hold = true
	if t.short == nil {
		t.short = lacks
	}
	return t
}

// established tells whether the control plane came up once: it has data, and what it becomes must be able to read them.
func (s *scope) established() bool {
	return s.observed.controlPlane != nil &&
		(s.observed.kubeconfig != nil || wasActive(s.object.Status.Timeline))
}

// goesWithHost refuses a version that the host cluster cannot serve: pods are copied to the host's API server, and one that is
// older drops the fields that it does not know. The version that runs is not asked about.
func (r *Reconciler) goesWithHost(ctx context.Context, s *scope, asked configv1alpha1.KubernetesVersion) error {
	if s.runs().Kubernetes == asked.Version {
		return nil
	}
	host, err := r.Host.Minor(ctx)
	if err != nil {
		return fmt.Errorf("asking the host cluster for its version: %w", err)
	}
	switch minor := minorOf(asked.Version); {
	case minor > host:
		return step.Terminal(v1alpha1.ReasonVersionSkew, fmt.Sprintf("Kubernetes %s is newer than the host cluster's v1.%d", asked.Version, host))
	case minor < host-oldestBehindHost:
		return step.Terminal(v1alpha1.ReasonVersionSkew, fmt.Sprintf("Kubernetes %s is more than %d minor versions behind the host cluster's v1.%d",
			asked.Version, oldestBehindHost, host))
	default:
		return nil
	}
}

// vclusterFollows refuses a version of vCluster that does not follow the one that runs: vCluster is upgraded one minor version
// at a time and never goes back.
func (r *Reconciler) vclusterFollows(s *scope) error {
	configured, proven := r.Platform.Charts.VCluster.Version, s.proven().VCluster
	from, to := minorOf(proven), minorOf(configured)
	if proven == "" || to == from || to == from+1 {
		return nil
	}
	return step.Terminal(v1alpha1.ReasonVersionSkew, fmt.Sprintf("vCluster %s does not follow %s, which runs: it is upgraded one minor version at a time",
		configured, proven))
}

// oneMinorAtATime finds the version that leads to the one that is asked for. It may go back to what was proven last, for an
// upgrade that did not end well.
func (r *Reconciler) oneMinorAtATime(s *scope, asked configv1alpha1.KubernetesVersion, size configv1alpha1.Size) target {
	proven := s.proven().Kubernetes
	from, to := minorOf(proven), minorOf(asked.Version)
	switch {
	case proven == "" || to == from || to == from+1:
		return target{version: asked, size: size}
	case to < from:
		return r.stay(s, size, step.Terminal(v1alpha1.ReasonVersionSkew,
			fmt.Sprintf("Kubernetes cannot go back from %s to %s", proven, asked.Version)))
	}
	for _, offered := range r.Platform.Kubernetes {
		if minorOf(offered.Version) == from+1 {
			return target{version: offered, size: size, short: step.WaitFor(step.StaleRetry, v1alpha1.ReasonInstalling,
				fmt.Sprintf("on the way to Kubernetes %s, with %s first", asked.Version, offered.Version))}
		}
	}
	return r.stay(s, size, step.Terminal(v1alpha1.ReasonVersionSkew,
		fmt.Sprintf("Kubernetes goes one minor version at a time, and between %s and %s there is no v1.%d on offer", proven, asked.Version, from+1)))
}

// stay keeps the version that runs, if it is still on offer, so that a tenant cannot avoid other changes by what it asks for.
func (r *Reconciler) stay(s *scope, size configv1alpha1.Size, short error) target {
	version, ok := r.version(s.runs().Kubernetes)
	return target{version: version, size: size, hold: !ok || s.runs().Kubernetes == "", short: short}
}

// runs are the versions that the release of the control plane asks for now.
func (s *scope) runs() v1alpha1.CloudSpaceVersions { return releaseVersions(s.observed.controlPlane) }

// proven are the versions that the control plane was last seen to run with.
func (s *scope) proven() v1alpha1.CloudSpaceVersions {
	proven, runs := s.object.Status.Versions, s.runs()
	if proven.Kubernetes == "" {
		proven.Kubernetes = runs.Kubernetes
	}
	if proven.VCluster == "" {
		proven.VCluster = runs.VCluster
	}
	return proven
}

// minorOf is the minor version, or -1 for what is no version.
func minorOf(text string) int {
	parsed, err := version.ParseGeneric(text)
	if err != nil {
		return -1
	}
	return int(parsed.Minor())
}
