// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// runImages runs the command and returns the reference that it prints.
func runImages(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newCommand()
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"--source", "testdata/module", "--version", "v1.2.3", "--revision", "abc", "--created", "1700000000", "hello"}, args...))
	err := cmd.ExecuteContext(t.Context())
	return strings.TrimSpace(out.String()), err
}

// startRegistry returns the address of a registry on loopback.
func startRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// pull returns the index behind a reference by digest, and the images in it by platform.
func pull(t *testing.T, reference string) (v1.ImageIndex, map[string]v1.Image) {
	t.Helper()
	digest, err := name.NewDigest(reference)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(digest, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images := map[string]v1.Image{}
	for _, described := range manifest.Manifests {
		image, err := index.Image(described.Digest)
		if err != nil {
			t.Fatal(err)
		}
		images[described.Platform.String()] = image
	}
	return index, images
}

// files reads all files of an image, with their headers.
func files(t *testing.T, image v1.Image) (headers map[string]*tar.Header, contents map[string][]byte) {
	t.Helper()
	headers, contents = map[string]*tar.Header{}, map[string][]byte{}
	stream := mutate.Extract(image)
	defer func() { _ = stream.Close() }()
	reader := tar.NewReader(stream)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		if contents[header.Name], err = io.ReadAll(reader); err != nil {
			t.Fatal(err)
		}
		headers[header.Name] = header
	}
}

func TestPushedImageIsForEveryPlatform(t *testing.T) {
	reference, err := runImages(t, "--registry", startRegistry(t)+"/platform", "--push")
	if err != nil {
		t.Fatal(err)
	}
	index, images := pull(t, reference)
	if err := validate.Index(index); err != nil {
		t.Errorf("the index is not sound: %v", err)
	}
	if got := slices.Sorted(maps.Keys(images)); !slices.Equal(got, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("platforms are %v", got)
	}
	tag, _, _ := strings.Cut(reference, "@")
	tagged, err := remote.Head(must(name.NewTag(tag)), remote.WithContext(t.Context()))
	if err != nil || !strings.HasSuffix(reference, tagged.Digest.String()) {
		t.Errorf("the tag leads to %v (%v), not to %s", tagged, err, reference)
	}
	for platform, image := range images {
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Platform().String(); got != platform {
			t.Errorf("%s: the image says it is for %s", platform, got)
		}
		checkConfig(t, config)
		checkFiles(t, image)
	}
}

func checkConfig(t *testing.T, config *v1.ConfigFile) {
	t.Helper()
	if config.Config.User != "65532:65532" {
		t.Errorf("user is %q, want numbers, not root's", config.Config.User)
	}
	if !slices.Equal(config.Config.Entrypoint, []string{"/hello"}) || config.Config.Cmd != nil {
		t.Errorf("entrypoint is %v, command %v", config.Config.Entrypoint, config.Config.Cmd)
	}
	for label, want := range map[string]string{
		"version": "v1.2.3", "revision": "abc", "created": "2023-11-14T22:13:20Z", "licenses": "Apache-2.0", "title": "hello",
		"source": "https://github.com/tantilium/cloud-runner",
	} {
		if got := config.Config.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
}

func checkFiles(t *testing.T, image v1.Image) {
	t.Helper()
	headers, contents := files(t, image)
	want := []string{"etc", "etc/ssl", "etc/ssl/certs", "etc/ssl/certs/ca-certificates.crt", "hello"}
	if got := slices.Sorted(maps.Keys(headers)); !slices.Equal(got, want) {
		t.Errorf("files are %v, want %v", got, want)
	}
	for name, header := range headers {
		if header.Uid != 0 || header.Mode&0o022 != 0 {
			t.Errorf("%s belongs to %d with mode %o: the user could change it", name, header.Uid, header.Mode)
		}
	}
	if !x509.NewCertPool().AppendCertsFromPEM(contents["etc/ssl/certs/ca-certificates.crt"]) {
		t.Error("no certificates")
	}
}

func TestBinaryRunsAndKnowsItsVersion(t *testing.T) {
	reference, err := runImages(t, "--registry", startRegistry(t), "--push", "--platforms", "linux/"+runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	_, images := pull(t, reference)
	_, contents := files(t, images["linux/"+runtime.GOARCH])
	binary := filepath.Join(t.TempDir(), "hello")
	if err := os.WriteFile(binary, contents["hello"], 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), binary).CombinedOutput(); err != nil || string(out) != "v1.2.3\n" {
		t.Errorf("it says %q: %v", out, err)
	}
}

func TestSameSourceGivesSameBytes(t *testing.T) {
	address := startRegistry(t)
	elsewhere := filepath.Join(t.TempDir(), "clone")
	if err := os.CopyFS(elsewhere, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	here, err := runImages(t, "--registry", address, "--push")
	if err != nil {
		t.Fatal(err)
	}
	there, err := runImages(t, "--registry", address, "--push", "--source", elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	if here != there {
		t.Errorf("%s and %s differ", here, there)
	}
}

func TestImageInAFolderIsTheOnePushed(t *testing.T) {
	folder := t.TempDir()
	reference, err := runImages(t, "--registry", "registry.example.com/platform", "--folder", folder)
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(filepath.Join(folder, "hello"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || !strings.HasSuffix(reference, manifest.Manifests[0].Digest.String()) {
		t.Errorf("the folder has %v (%v), want %s", manifest, err, reference)
	}
}

func TestWhatCannotBeBuiltIsSaid(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no such command", []string{"--registry", "r.example.com", "--folder", t.TempDir(), "nothing"}, "nothing"},
		{"no such platform", []string{"--registry", "r.example.com", "--folder", t.TempDir(), "--platforms", "linux/z80"}, "linux/z80"},
		{"no destination", []string{"--registry", "r.example.com"}, "--push"},
		{"no registry name", []string{"--registry", "https://r.example.com", "--folder", t.TempDir()}, "https"},
		{"no registry", []string{}, "registry"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := runImages(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one about %s", err, test.want)
			}
		})
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
