// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// The stand-in is only worth something as long as it says what the real helm-controller says: every state that it puts a
// HelmRelease in must be one that a real one was recorded in, and come in the same order.
func TestTheStandInWritesWhatTheRealOneWrote(t *testing.T) {
	t.Parallel()
	tests := []struct {
		id, recordings string
		behaviour      behaviour
		// last is in the state that ends the story.
		last string
	}{
		{id: "like-install", recordings: "install-*.yaml", last: "Ready True InstallSucceeded"},
		{id: "like-failure", recordings: "exhausted-*.yaml", behaviour: behaviour{fail: "timed out"}, last: "Ready False InstallFailed"},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			t.Parallel()
			recorded := recordedStates(t, tt.recordings)
			theStandIn.behave(tt.id, tt.behaviour)
			made := standInStates(t, tt.id, tt.last)
			at := 0
			for _, state := range made {
				found := slices.Index(recorded[at:], state)
				if found < 0 {
					t.Fatalf("the stand-in wrote\n  %s\nwhich the real one did not, after what came before; the real one wrote\n  %s", state, strings.Join(recorded[at:], "\n  "))
				}
				at += found
			}
		})
	}
}

func recordedStates(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(repository("controllers", "cloudspace", "testdata", "helmreleases", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings %s: %v", pattern, err)
	}
	var states []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		release := &helmv2.HelmRelease{}
		if err := yaml.UnmarshalStrict(text, release); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		states = append(states, stateOf(release))
	}
	return slices.Compact(states)
}

// standInStates makes a Tenant and watches the release of its control plane until a state comes that contains last and is of the
// release's generation.
func standInStates(t *testing.T, id, last string) []string {
	t.Helper()
	watching, err := api.Watch(t.Context(), &helmv2.HelmReleaseList{}, client.InNamespace(systemNamespace))
	if err != nil {
		t.Fatal(err)
	}
	defer watching.Stop()
	create(t, tenant(id))
	var states []string
	for event := range watching.ResultChan() {
		release, ok := event.Object.(*helmv2.HelmRelease)
		if !ok || event.Type == watch.Bookmark || release.Name != id {
			continue
		}
		states = append(states, stateOf(release))
		if strings.Contains(states[len(states)-1], last) && release.Status.ObservedGeneration == release.Generation {
			return slices.Compact(states)
		}
	}
	t.Fatal("the watch ended")
	return nil
}

var names = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`for release \S+`), "for release R"},
	{regexp.MustCompile(`with chart [^\s:]+(: .*)?`), "with chart C"},
	{regexp.MustCompile(`timeout of \S+`), "timeout of T"},
	{regexp.MustCompile(`retrying after \S+`), "retrying after T"},
}

// stateOf is what a HelmRelease says, without the names and numbers of the one that says it.
func stateOf(release *helmv2.HelmRelease) string {
	var said []string
	for _, c := range release.Status.Conditions {
		message := strings.ReplaceAll(c.Message, "\n", " ")
		for _, n := range names {
			message = n.pattern.ReplaceAllString(message, n.by)
		}
		said = append(said, fmt.Sprintf("%s %s %s %q of this spec: %v", c.Type, c.Status, c.Reason, message, c.ObservedGeneration == release.Generation))
	}
	slices.Sort(said)
	history := "none"
	if latest := release.Status.History.Latest(); latest != nil {
		history = latest.Status
	}
	return fmt.Sprintf("held %v, ended %v, latest %s; %s", len(release.Finalizers) > 0, release.Status.ObservedGeneration == release.Generation, history, strings.Join(said, "; "))
}
