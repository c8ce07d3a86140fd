// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func folders(t *testing.T, base string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(base, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHierarchiesOfVersion1(t *testing.T) {
	base := t.TempDir()
	folders(t, base, "cpu,cpuacct", "memory")
	if err := os.Symlink("cpu,cpuacct", filepath.Join(base, "cpu")); err != nil {
		t.Fatal(err)
	}
	got, err := hierarchies(base)
	want := []string{filepath.Join(base, "cpu,cpuacct"), filepath.Join(base, "memory")}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("hierarchies are %q, %v, want %q", got, err, want)
	}
}

func TestHierarchyOfVersion2IsOne(t *testing.T) {
	base := t.TempDir()
	folders(t, base, "system.slice", "user.slice")
	if err := os.WriteFile(filepath.Join(base, "cgroup.controllers"), []byte("cpu memory pids\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := hierarchies(base)
	if err != nil || !slices.Equal(got, []string{base}) {
		t.Errorf("hierarchies are %q, %v, want %q alone", got, err, base)
	}
}

func TestChildrenMayUseEveryController(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(filepath.Join(base, "cgroup.controllers"), []byte("cpu memory pids\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := delegate(base); err != nil {
		t.Fatal(err)
	}
	// A plain file keeps what is written last; the kernel's adds up.
	if text, err := os.ReadFile(filepath.Join(base, "cgroup.subtree_control")); err != nil || string(text) != "+pids" {
		t.Errorf("subtree_control holds %q, %v", text, err)
	}
}

func TestTreesAreRemovedFromTheLeavesUp(t *testing.T) {
	base := t.TempDir()
	folders(t, base, "root/kubepods/burstable/pod1", "root/kubepods/besteffort", "other/kubepods")
	if err := removeTree(t.Context(), filepath.Join(base, "root")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(base, "root")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the tree is still there: %v", err)
	}
	if _, err := os.Stat(filepath.Join(base, "other", "kubepods")); err != nil {
		t.Errorf("another tree was harmed: %v", err)
	}
}

func TestATreeThatIsNotThereIsRemoved(t *testing.T) {
	if err := removeTree(t.Context(), filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}
