// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// Every state that a real HelmRelease was recorded in gets the verdict that is written down for it: see the README there.
func TestVerdictsOnRecordings(t *testing.T) {
	paths, err := filepath.Glob("testdata/helmreleases/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings in testdata/helmreleases: %v", err)
	}
	missing := decoded(t, "testdata/helmchart-missing.yaml", &sourcev1.HelmChart{})
	var verdicts strings.Builder
	for _, path := range paths {
		release := decoded(t, path, &helmv2.HelmRelease{})
		var chart *sourcev1.HelmChart
		if strings.HasPrefix(filepath.Base(path), "chart-missing") {
			chart = missing
		}
		v := judge(release, chart, recordedVersion(release))
		fmt.Fprintf(&verdicts, "%-22s %-12s %.60s\n", filepath.Base(path), v.state, v.detail)
	}
	golden := "testdata/helmreleases/verdicts.golden.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(verdicts.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), verdicts.String()); diff != "" {
		t.Errorf("verdicts (-want +got); if it should be so, run the test with -update:\n%s", diff)
	}
}

// recordedVersion is the version in the name of the chart object that a release refers to.
func recordedVersion(release *helmv2.HelmRelease) string {
	name := release.Spec.ChartRef.Name
	return name[strings.LastIndex(name, "-")+1:]
}

func decoded[T any](tb testing.TB, path string, into T) T {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return into
}
