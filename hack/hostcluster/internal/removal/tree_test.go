// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package removal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTreeIsRemoved(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	deep := filepath.Join(folder, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(deep, "file"), nil, 0o400); err != nil {
		t.Fatal(err)
	}
	if err := Tree(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func TestATreeThatIsNotThereIsNoError(t *testing.T) {
	if err := Tree(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(makeMutable(folder), Tree(folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("what a link leads to was harmed: %v", err)
	}
}
