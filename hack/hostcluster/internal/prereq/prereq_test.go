// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package prereq

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHasFileSystem(t *testing.T) {
	const text = "nodev\tsysfs\n\text4\nnodev\toverlay\n"
	for name, want := range map[string]bool{"overlay": true, "ext4": true, "sys": false, "btrfs": false} {
		if got := hasFileSystem(text, name); got != want {
			t.Errorf("hasFileSystem(%q) = %t, want %t", name, got, want)
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"disk":   {disk(math.MaxUint64, t.TempDir()), "make room"},
		"memory": {memory(math.MaxUint64 / 10), "use a larger machine"},
	} {
		if test.err == nil || !strings.Contains(test.err.Error(), test.want) || strings.Contains(test.err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", name, test.err, test.want)
		}
	}
}

func TestWhatIsThereIsNoError(t *testing.T) {
	for _, folder := range []string{t.TempDir(), filepath.Join(t.TempDir(), "not", "yet")} {
		if err := disk(1, folder); err != nil {
			t.Error(err)
		}
	}
	if err := memory(1 << 20); err != nil {
		t.Error(err)
	}
}

func TestStaticTellsBinariesApart(t *testing.T) {
	this, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if static("/does/not/exist")() {
		t.Error("a missing file counts as static")
	}
	if static("/etc/hostname")() {
		t.Error("a text counts as static")
	}
	if !static(this)() {
		t.Error("a binary without cgo does not count as static")
	}
}

func TestLastLines(t *testing.T) {
	for given, want := range map[string]string{"a\nb\nc\n": "b\nc", "a": "a", "": ""} {
		if got := lastLines(given, 2); got != want {
			t.Errorf("lastLines(%q) = %q, want %q", given, got, want)
		}
	}
}
