// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// write writes an image with one program and a link to it, and reads it back.
func write(t *testing.T) v1.Image {
	t.Helper()
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	if err := os.WriteFile(program, []byte("hello"), 0o755); err != nil {
		t.Fatal(err)
	}
	image := Image{
		Ref: "example.test/a/b:1", Entrypoint: []string{"/opt/bin/program"}, Command: []string{"serve"}, User: "65534:65534",
		Files: []File{
			{Source: program, Target: "/opt/bin/program"},
			{Link: "program", Target: "/opt/bin/other"},
			{Script: "#!/bin/sh\n", Target: "/script"},
		},
	}
	path := filepath.Join(folder, "image.tar")
	if err := Write(image, path); err != nil {
		t.Fatal(err)
	}
	back, err := tarball.ImageFromPath(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func TestImageHoldsFilesLinksAndFolders(t *testing.T) {
	contents := mutate.Extract(write(t))
	defer contents.Close()
	found := map[string]tar.Header{}
	reader := tar.NewReader(contents)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Clean(header.Name)] = *header
	}
	if program := found["opt/bin/program"]; program.Size != 5 || program.Mode != 0o755 {
		t.Errorf("program has size %d and mode %o", program.Size, program.Mode)
	}
	if script := found["script"]; script.Size != 10 || script.Mode != 0o755 {
		t.Errorf("script has size %d and mode %o", script.Size, script.Mode)
	}
	if link := found["opt/bin/other"]; link.Linkname != "program" {
		t.Errorf("link leads to %q", link.Linkname)
	}
	for folder, mode := range map[string]int64{"tmp": 0o1777, "opt": 0o755, "opt/bin": 0o755} {
		if header := found[folder]; header.Typeflag != tar.TypeDir || header.Mode != mode {
			t.Errorf("folder %s has type %c and mode %o", folder, header.Typeflag, header.Mode)
		}
	}
}

func TestImageHasItsDefaults(t *testing.T) {
	file, err := write(t).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := file.Config
	if !slices.Equal(config.Entrypoint, []string{"/opt/bin/program"}) || !slices.Equal(config.Cmd, []string{"serve"}) {
		t.Errorf("entry point %q, command %q", config.Entrypoint, config.Cmd)
	}
	if config.User != "65534:65534" || file.OS != "linux" || file.Architecture == "" {
		t.Errorf("user %q, system %q, architecture %q", config.User, file.OS, file.Architecture)
	}
}

func TestEqualImagesHaveEqualDigests(t *testing.T) {
	one, err := write(t).Digest()
	if err != nil {
		t.Fatal(err)
	}
	two, err := write(t).Digest()
	if err != nil {
		t.Fatal(err)
	}
	if one != two {
		t.Errorf("digests %s and %s of the same files", one, two)
	}
}

func TestWriteLeavesNothingBehindOnAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	err := Write(Image{Ref: "example.test/a/b:1", Files: []File{{Source: "/does/not/exist", Target: "/a"}}}, path)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want one for the missing file", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an archive was left: %v", err)
	}
}
