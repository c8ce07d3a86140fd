// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// makeClone makes a folder that looks like a clone and returns its real path.
func makeClone(t *testing.T) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, marker)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestFindRoot(t *testing.T) {
	root := makeClone(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{
		"the clone itself":            root,
		"a folder inside":             filepath.Join(root, "hack", "hostcluster"),
		"a link to the clone":         link,
		"a folder inside by the link": filepath.Join(link, "hack"),
	} {
		t.Run(name, func(t *testing.T) {
			found, err := FindRoot(folder)
			if err != nil || found != root {
				t.Errorf("FindRoot(%q) = %q, %v, want %q", folder, found, err, root)
			}
		})
	}
}

func TestFindRootOutsideOfAClone(t *testing.T) {
	_, err := FindRoot(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "--clone") {
		t.Errorf("FindRoot outside of a clone: error %v, want one that tells of --clone", err)
	}
}

func TestNamesDeriveFromThePath(t *testing.T) {
	one, again, other := NamesOf("/srv/one"), NamesOf("/srv/one"), NamesOf("/srv/other")
	if one != again {
		t.Errorf("names of one path differ: %+v, %+v", one, again)
	}
	if one.ID == other.ID || one.Node == other.Node || one.CgroupRoot == other.CgroupRoot {
		t.Errorf("names of two paths are shared: %+v, %+v", one, other)
	}
	for _, path := range []string{"/", "/a", "/srv/one", strings.Repeat("/long", 100)} {
		names := NamesOf(path)
		if names.Port < firstPort || names.Port >= firstPort+portCount {
			t.Errorf("port of %q is %d, not in [%d, %d)", path, names.Port, firstPort, firstPort+portCount)
		}
		if len(names.Node) > 63 {
			t.Errorf("host name of %q is longer than 63: %s", path, names.Node)
		}
	}
}

func TestLockIsHeldByOneAtATime(t *testing.T) {
	layout := LayoutOf(t.TempDir())
	first, err := layout.Acquire("up")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Acquire("down"); err == nil || !strings.Contains(err.Error(), `"up", process`) {
		t.Errorf("second Acquire: error %v, want one that names the holder", err)
	}
	first.Release()
	second, err := layout.Acquire("down")
	if err != nil {
		t.Fatalf("Acquire after Release: %v", err)
	}
	second.Release()
}

func TestLocalFolderIsKeptFromGit(t *testing.T) {
	layout := LayoutOf(t.TempDir())
	if err := layout.MakeLocal(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(layout.Local, ".gitignore"))
	if err != nil || string(text) != "*\n" {
		t.Errorf(".gitignore holds %q, %v", text, err)
	}
}
