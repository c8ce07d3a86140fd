// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// What the release becomes in one pass: all that is wanted, or what it was.
func TestAChangeOfAControlPlane(t *testing.T) {
	another := func(s *scope, _ *Reconciler) { s.object.Spec.KubernetesVersion = "v1.36.0" }
	tests := map[string]struct {
		// taken says that somebody else has the only turn.
		taken  bool
		change func(*scope, *Reconciler)
		// wantVersion is what the release asks for, wantRolling and wantAsked what is written on it.
		wantVersion, wantRolling, wantAsked string
		wantShort                           string
		wantAdvisory                        bool
	}{
		"nothing changed": {
			taken: true, change: func(*scope, *Reconciler) {}, wantVersion: "v1.35.0", wantAsked: "v1.35.0/Small",
		},
		"the spec asks for another version, and it has its turn": {
			change: another, wantVersion: "v1.36.0", wantRolling: "spec/2030-01-02T12:00:00Z", wantAsked: "v1.36.0/Small",
		},
		"the spec asks for another version, and it must wait": {
			taken: true, change: another, wantVersion: "v1.35.0", wantShort: "WaitingForTurn",
		},
		"the platform changes, and it has its turn": {
			change:      func(_ *scope, r *Reconciler) { r.Platform.Images.Registry = "mirror.example.com" },
			wantVersion: "v1.35.0", wantRolling: "platform/2030-01-02T12:00:00Z", wantAsked: "v1.35.0/Small",
		},
		"the platform changes, and it did not run before": {
			change: func(s *scope, r *Reconciler) {
				s.object.Status.Conditions[0].Status = metav1.ConditionFalse
				r.Platform.Images.Registry = "mirror.example.com"
			},
			wantVersion: "v1.35.0", wantRolling: "mend/2030-01-02T12:00:00Z", wantAsked: "v1.35.0/Small",
		},
		"the platform changes, and it must wait": {
			taken: true, change: func(_ *scope, r *Reconciler) { r.Platform.Images.Registry = "mirror.example.com" },
			wantVersion: "v1.35.0", wantShort: "WaitingForTurn", wantAdvisory: true,
		},
		"it has a turn already and is changed once more": {
			taken: true,
			change: func(s *scope, r *Reconciler) {
				s.observed.controlPlane.Annotations[annotationRolling] = rolledByPlatform + "/2030-01-02T12:00:00Z"
				another(s, r)
			},
			// The turn stays the platform's: a tenant cannot take a failure off the platform's account.
			wantVersion: "v1.36.0", wantAsked: "v1.36.0/Small",
		},
		"it never came up": {
			taken: true,
			change: func(s *scope, r *Reconciler) {
				s.object.Status.Timeline = nil
				another(s, r)
			},
			wantVersion: "v1.36.0", wantAsked: "v1.36.0/Small",
		},
		"its release was altered by hand": {
			taken: true,
			change: func(s *scope, _ *Reconciler) {
				s.observed.controlPlane.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`{}`)}
			},
			wantVersion: "v1.35.0", wantAsked: "v1.35.0/Small",
		},
		"its release was made before revisions were, and is right": {
			taken: true,
			change: func(s *scope, _ *Reconciler) {
				s.observed.controlPlane.Spec.CommonMetadata.Annotations = nil
				s.observed.controlPlane.Annotations = nil
			},
			wantVersion: "v1.35.0", wantAsked: "v1.35.0/Small",
		},
		"only the order of the values differs": {
			taken: true,
			change: func(s *scope, _ *Reconciler) {
				s.observed.controlPlane.Spec.CommonMetadata.Annotations = nil
				s.observed.controlPlane.Spec.Values.Raw = reordered(t, s.observed.controlPlane.Spec.Values.Raw)
			},
			wantVersion: "v1.35.0", wantAsked: "v1.35.0/Small",
		},
		"the spec asks for what cannot be": {
			change:      func(s *scope, _ *Reconciler) { s.object.Spec.KubernetesVersion = "v1.20.0" },
			wantVersion: "v1.35.0", wantShort: "UnsupportedVersion",
		},
		"the platform does not offer any more what was granted": {
			change: func(_ *scope, r *Reconciler) {
				r.Platform.Kubernetes = []configv1alpha1.KubernetesVersion{{Version: "v1.36.0"}}
			},
			wantVersion: "v1.35.0", wantShort: "UnsupportedVersion", wantAdvisory: true,
		},
		"the version that is asked for is two steps away": {
			change: func(s *scope, r *Reconciler) {
				r.Platform.Kubernetes = append(r.Platform.Kubernetes, configv1alpha1.KubernetesVersion{Version: "v1.37.0"})
				r.Host = hostMinor(37)
				s.object.Spec.KubernetesVersion = "v1.37.0"
			},
			wantVersion: "v1.36.0", wantRolling: "spec/2030-01-02T12:00:00Z", wantShort: "Installing",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := offering(t, "v1.36.0", "v1.35.0")
			f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1}, "other", "another")
			r.Rollout = f.Rollout
			if tt.taken {
				f.rolls("other", rolledBySpec)
				f.rolls("another", rolledByPlatform)
			}
			s := grantedScope(testCloudSpace("default"))
			s.object.Spec.KubernetesVersion = "v1.35.0"
			running := runningWith(t, r, "v1.35.0", "v1.35.0")
			s.object.Status, s.observed = running.object.Status, running.observed
			s.observed.controlPlane.Annotations[annotationAsked] = s.asks()
			tt.change(s, r)
			to, err := r.target(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			got, err := r.changedControlPlane(t.Context(), s, to)
			if err != nil {
				t.Fatal(err)
			}
			reason := ""
			if s.short != nil {
				reason, _ = step.Explain(s.short, "none")
			}
			made := []string{releaseVersions(got).Kubernetes, got.Annotations[annotationRolling], got.Annotations[annotationAsked], reason}
			if diff := cmp.Diff([]string{tt.wantVersion, tt.wantRolling, tt.wantAsked, tt.wantShort}, made); diff != "" {
				t.Errorf("version, rolling, asked, why not more (-want +got):\n%s", diff)
			}
			if advisory := step.Run(t.Context(), s, []step.Step[*scope]{{Do: func(context.Context, *scope) error { return s.short }}})[0].Optional; advisory != tt.wantAdvisory {
				t.Errorf("advisory is %v, want %v", advisory, tt.wantAdvisory)
			}
			if want := Revision(got); writtenRevision(got) != want && tt.wantShort == "" {
				t.Errorf("the release says revision %s of itself and is %s", writtenRevision(got), want)
			}
		})
	}
}

// reordered is the same values in the order, and with the spaces, of another writer.
func reordered(t *testing.T, values []byte) []byte {
	t.Helper()
	var content map[string]any
	if err := json.Unmarshal(values, &content); err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// failingReader lists nothing.
type failingReader struct{ client.Client }

func (failingReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errBoom
}

// A cluster that cannot be asked gives no turn: nothing is changed, and nothing is said of it.
func TestAFailedCallGivesNoTurn(t *testing.T) {
	r := offering(t, "v1.36.0", "v1.35.0")
	f := newFleet(t, configv1alpha1.Rollout{MaxConcurrent: 1})
	r.Rollout = &Rollout{Reader: failingReader{f.client}, Limits: f.Limits, Clock: f.clock}
	s := runningWith(t, r, "v1.35.0", "v1.35.0")
	s.object.Spec.KubernetesVersion = "v1.36.0"
	to, err := r.target(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var release *helmv2.HelmRelease
	if release, err = r.changedControlPlane(t.Context(), s, to); !errors.Is(err, errBoom) || release != nil {
		t.Errorf("got %v and error %v, want none and %v", release, err, errBoom)
	}
}
