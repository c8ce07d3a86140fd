// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package values holds a test alone: that vCluster accepts the Helm values that our controller renders. It stands in this
// module because vCluster's own code is here, and must not be in the operator's.
package values

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loft-sh/vcluster/config"
	vcluster "github.com/loft-sh/vcluster/pkg/config"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// golden are the values that the controller renders, recorded by its own tests.
const golden = "../../../../controllers/cloudspace/testdata/values*.golden.yaml"

// vclusterChart loads the chart that vCluster's module carries.
func vclusterChart(t *testing.T) *chart.Chart {
	t.Helper()
	folder, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/loft-sh/vcluster").Output()
	if err != nil {
		t.Fatalf("find vCluster's module: %v", err)
	}
	loaded, err := loader.Load(filepath.Join(strings.TrimSpace(string(folder)), "chart"))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// accept returns the error of the first of vCluster's checks that refuses the values: its strict decoder, the chart's schema
// on what the chart makes of them, and the validation that the control plane does when it starts.
func accept(t *testing.T, chart *chart.Chart, text []byte) error {
	t.Helper()
	if err := (&config.Config{}).UnmarshalYAMLStrict(text); err != nil {
		return err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(text, &values); err != nil {
		return err
	}
	merged, err := util.CoalesceValues(chart, values)
	if err != nil {
		return err
	}
	if err := util.ValidateAgainstSchema(chart, merged); err != nil {
		return err
	}
	// The chart hands all values, defaults included, to the control plane in a Secret.
	whole, err := yaml.Marshal(merged)
	if err != nil {
		return err
	}
	_, err = vcluster.ParseConfigBytes(whole, "alice-default", nil)
	return err
}

func TestVClusterAcceptsWhatTheControllerRenders(t *testing.T) {
	files, err := filepath.Glob(golden)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("no file matches %s: run the tests of controllers/cloudspace, which record the values they render", golden)
	}
	chart := vclusterChart(t)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := accept(t, chart, text); err != nil {
				t.Errorf("vCluster refuses the values: %v", err)
			}
		})
	}
}

func TestVClusterRefusesWrongValues(t *testing.T) {
	chart := vclusterChart(t)
	for name, text := range map[string]string{
		"a field it does not know":      "controlPlane: {statefulset: {}}",
		"a value of the wrong type":     "controlPlane: {distro: {k8s: {enabled: perhaps}}}",
		"a security standard of no one": "policies: {podSecurityStandard: lenient}",
	} {
		t.Run(name, func(t *testing.T) {
			if accept(t, chart, []byte(text)) == nil {
				t.Error("the values were accepted")
			}
		})
	}
}
