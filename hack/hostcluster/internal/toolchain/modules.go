// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func chartFile() string { return "vcluster-" + bare(VCluster) + ".tgz" }

// chart packages the chart that the vCluster module carries. In the tree it has no version of its own.
func (b build) chart(ctx context.Context) error {
	module, err := b.moduleFolder(ctx, vclusterModule)
	if err != nil {
		return err
	}
	version := bare(VCluster)
	helm := exec.CommandContext(ctx, filepath.Join(b.folder, "bin", "helm"), "package", filepath.Join(module, "chart"),
		"--version", version, "--app-version", version, "--destination", filepath.Join(b.folder, "charts"))
	if out, err := helm.CombinedOutput(); err != nil {
		return fmt.Errorf("package the vCluster chart: %w\n%s", err, out)
	}
	return nil
}

// crds copies the custom resource definitions that Flux's modules carry.
func (b build) crds(ctx context.Context) error {
	for _, module := range []string{sourceModule, helmModule, kustomizeModule} {
		folder, err := b.moduleFolder(ctx, module)
		if err != nil {
			return err
		}
		if err := copyFiles(filepath.Join(folder, "config", "crd", "bases"), filepath.Join(b.folder, "crds")); err != nil {
			return fmt.Errorf("copy custom resource definitions of %s: %w", module, err)
		}
	}
	return nil
}

func copyFiles(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		contents, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, entry.Name()), contents, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// moduleFolder is where Go keeps the module at the version of the tools module.
func (b build) moduleFolder(ctx context.Context, module string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = b.cache.tools
	list.Env = append(os.Environ(), environment()...)
	var complaints bytes.Buffer
	list.Stderr = &complaints
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find module %s: %w\n%s", module, err, complaints.String())
	}
	return strings.TrimSpace(string(out)), nil
}
