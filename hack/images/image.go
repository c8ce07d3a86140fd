// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"path"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user has no name anywhere: Kubernetes can tell from the number alone that it is not root.
const user = "65532:65532"

// certificatesPath is where Go looks first.
const certificatesPath = "/etc/ssl/certs/ca-certificates.crt"

// build makes the image of a command for one platform.
func (r release) build(ctx context.Context, command string, platform v1.Platform) (v1.Image, error) {
	binary, err := r.compile(ctx, command, platform)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, file := range []file{{certificatesPath, 0o644, certificates()}, {"/" + command, 0o755, binary}} {
		layer, err := file.layer()
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{CreatedBy: "COPY " + file.path}}); err != nil {
			return nil, err
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = platform.OS, platform.Architecture, platform.Variant
	config.Created = v1.Time{Time: r.time()}
	config.Config = v1.Config{Entrypoint: []string{"/" + command}, User: user, WorkingDir: "/", Labels: r.labels(command)}
	return mutate.ConfigFile(image, config)
}

// labels are those that the OCI image specification defines.
func (r release) labels(command string) map[string]string {
	labels := map[string]string{
		"title":    command,
		"source":   "https://github.com/tantilium/cloud-runner",
		"licenses": "Apache-2.0",
		"version":  r.version,
		"created":  r.time().Format(time.RFC3339),
	}
	if r.revision != "" {
		labels["revision"] = r.revision
	}
	prefixed := map[string]string{}
	for name, value := range labels {
		prefixed["org.opencontainers.image."+name] = value
	}
	return prefixed
}

func (r release) time() time.Time { return time.Unix(r.created, 0).UTC() }

// certificates are the authorities that Mozilla trusts without reservation.
func certificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
		}
	}
	return text.Bytes()
}

// file is one file of an image. It belongs to root, and only root could change it.
type file struct {
	path     string
	mode     int64
	contents []byte
}

// layer holds the file and the folders above it, all with the same time.
func (f file) layer() (v1.Layer, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	name := strings.TrimPrefix(f.path, "/")
	for _, folder := range foldersAbove(name) {
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}); err != nil {
			return nil, err
		}
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: f.mode, Size: int64(len(f.contents)), ModTime: time.Unix(0, 0)}
	if err := writer.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := writer.Write(f.contents); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// foldersAbove lists the folders that a file is in, the outermost first.
func foldersAbove(name string) []string {
	folder := path.Dir(name)
	if folder == "." {
		return nil
	}
	return append(foldersAbove(folder), folder)
}
