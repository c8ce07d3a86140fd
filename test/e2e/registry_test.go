//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	. "github.com/onsi/gomega"
)

// registry is the host cluster's registry as pods reach it.
const registry = "registry.hostcluster.internal:5000"

func pushChart(t *testing.T, folder string) {
	t.Helper()
	hostcluster(t.Context(), t, "chart", "push", folder)
}

// pushManifests pushes the files of a folder as an artifact that Flux's OCIRepository reads.
func pushManifests(t *testing.T, repository, tag, folder string) {
	t.Helper()
	g := NewWithT(t)
	layer := static.NewLayer(archive(t, folder), types.MediaType("application/vnd.cncf.flux.content.v1.tar+gzip"))
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
		"application/vnd.cncf.flux.config.v1+json"), layer)
	g.Expect(err).NotTo(HaveOccurred())
	reference, err := name.ParseReference(os.Getenv("HOSTCLUSTER_REGISTRY_LOCAL")+"/"+repository+":"+tag, name.Insecure)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(remote.Write(reference, image, remote.WithContext(t.Context()))).To(Succeed())
}

func archive(t *testing.T, folder string) []byte {
	t.Helper()
	g := NewWithT(t)
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	files := tar.NewWriter(compressed)
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(paths).NotTo(BeEmpty())
	for _, path := range paths {
		text, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files.WriteHeader(&tar.Header{Name: filepath.Base(path), Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg})).To(Succeed())
		_, err = files.Write(text)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(files.Close()).To(Succeed())
	g.Expect(compressed.Close()).To(Succeed())
	return out.Bytes()
}
