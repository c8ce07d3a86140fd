// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package chartregistry

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// serve starts the registry whose contents lie in folder and returns its HOST:PORT.
func serve(t *testing.T, folder string) (address string, stop func()) {
	t.Helper()
	handler, err := open(folder)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	return strings.TrimPrefix(server.URL, "http://"), server.Close
}

func tag(t *testing.T, address string) name.Tag {
	t.Helper()
	parsed, err := name.NewTag(address + "/charts/one:1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestWhatWasPushedOutlivesTheProcess(t *testing.T) {
	folder := t.TempDir()
	pushed, err := random.Index(100, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	want, err := pushed.Digest()
	if err != nil {
		t.Fatal(err)
	}
	address, stop := serve(t, folder)
	if err := remote.WriteIndex(tag(t, address), pushed); err != nil {
		t.Fatal(err)
	}
	stop()

	address, stop = serve(t, folder)
	defer stop()
	found, err := remote.Index(tag(t, address))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := found.Digest(); err != nil || got != want {
		t.Errorf("digest %s, %v, want %s", got, err, want)
	}
}

func TestWhatWasDeletedStaysDeleted(t *testing.T) {
	folder := t.TempDir()
	image, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	address, stop := serve(t, folder)
	if err := remote.Write(tag(t, address), image); err != nil {
		t.Fatal(err)
	}
	if err := remote.Delete(tag(t, address)); err != nil {
		t.Fatal(err)
	}
	stop()

	address, stop = serve(t, folder)
	defer stop()
	if _, err := remote.Image(tag(t, address)); err == nil {
		t.Error("a deleted manifest came back")
	}
}
