// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archive writes one-layer container images as docker archives, from files of the machine.
package archive

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// searchPath is the PATH inside every image.
const searchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Image describes one image.
type Image struct {
	// Ref is the name with a tag under which a node holds it.
	Ref string
	// Entrypoint and Command are the image's defaults; both may be empty.
	Entrypoint, Command []string
	// User is UID:GID in digits. Empty means root.
	User string
	// Files are the contents. Their parent folders and a /tmp that all may write to are added.
	Files []File
}

// File is one file of an image at the path Target: a symbolic link to Link, an executable with the contents Script, or else a
// copy of Source.
type File struct {
	Source, Link, Script, Target string
}

// Write writes the image to a docker archive at path, which must not be in use. A file that exists is replaced at the end.
func Write(image Image, path string) error {
	tag, err := name.NewTag(image.Ref)
	if err != nil {
		return fmt.Errorf("read image name %q: %w", image.Ref, err)
	}
	built, err := build(image)
	if err != nil {
		return fmt.Errorf("make image %s: %w", image.Ref, err)
	}
	partial := path + ".partial"
	if err := tarball.WriteToFile(partial, tag, built); err != nil {
		return fmt.Errorf("write image %s: %w", image.Ref, err)
	}
	return os.Rename(partial, path)
}

// build does not compress the layer: it is read once, on the machine that wrote it.
func build(image Image) (v1.Image, error) {
	open := func() (io.ReadCloser, error) { return stream(image.Files), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.NoCompression))
	if err != nil {
		return nil, err
	}
	appended, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := appended.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{
		Entrypoint: image.Entrypoint,
		Cmd:        image.Command,
		User:       image.User,
		Env:        []string{"PATH=" + searchPath},
		WorkingDir: "/",
	}
	return mutate.ConfigFile(appended, config)
}

// stream writes the layer as it is read.
func stream(files []File) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() {
		layer := layer{tar: tar.NewWriter(writer), made: map[string]bool{}}
		writer.CloseWithError(layer.write(files))
	}()
	return reader
}

// layer writes files in an order and with times that depend on nothing but the list, so that equal lists give equal digests.
type layer struct {
	tar  *tar.Writer
	made map[string]bool
}

func (l *layer) write(files []File) error {
	if err := l.folder("tmp", 0o1777); err != nil {
		return err
	}
	for _, file := range files {
		if err := l.file(file); err != nil {
			return err
		}
	}
	return l.tar.Close()
}

func (l *layer) file(file File) error {
	target := strings.TrimPrefix(file.Target, "/")
	if err := l.parents(target); err != nil {
		return err
	}
	if file.Link != "" {
		return l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: target, Linkname: file.Link, Mode: 0o777})
	}
	if file.Script != "" {
		header := tar.Header{Typeflag: tar.TypeReg, Name: target, Size: int64(len(file.Script)), Mode: 0o755}
		if err := l.tar.WriteHeader(&header); err != nil {
			return err
		}
		_, err := io.WriteString(l.tar, file.Script)
		return err
	}
	source, err := os.Open(file.Source)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	info, err := source.Stat()
	if err != nil {
		return err
	}
	header := tar.Header{Typeflag: tar.TypeReg, Name: target, Size: info.Size(), Mode: int64(info.Mode().Perm())}
	if err := l.tar.WriteHeader(&header); err != nil {
		return err
	}
	_, err = io.Copy(l.tar, source)
	return err
}

func (l *layer) parents(target string) error {
	folder := path.Dir(target)
	if folder == "." || l.made[folder] {
		return nil
	}
	if err := l.parents(folder); err != nil {
		return err
	}
	return l.folder(folder, 0o755)
}

func (l *layer) folder(name string, mode int64) error {
	l.made[name] = true
	return l.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode})
}
