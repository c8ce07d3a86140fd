// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// fakeHost is an API server that has what tests put into it, by path. A list is written as the YAML of its items.
type fakeHost struct {
	lists map[string][]string
	texts map[string]string
	// fails are parts of paths that are answered with an error.
	fails []string
}

func (h *fakeHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, part := range h.fails {
		if strings.Contains(r.URL.Path, part) {
			http.Error(w, "broken on purpose, token="+canary, http.StatusInternalServerError)
			return
		}
	}
	if text, ok := h.texts[r.URL.Path]; ok {
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/version" {
		_, _ = io.WriteString(w, `{"gitVersion": "v1.36.3"}`)
		return
	}
	version, kind := apiVersion(r.URL.Path), "List"
	items := make([]string, 0, len(h.lists[r.URL.Path]))
	for _, item := range h.lists[r.URL.Path] {
		text, err := yaml.YAMLToJSON([]byte(item))
		if err != nil {
			panic(err)
		}
		items = append(items, string(text))
	}
	if strings.HasSuffix(r.URL.Path, "/pods") {
		kind = "PodList"
	}
	_, _ = fmt.Fprintf(w, `{"apiVersion": %q, "kind": %q, "metadata": {}, "items": [%s]}`, version, kind, strings.Join(items, ","))
}

func apiVersion(path string) string {
	parts := strings.Split(path, "/")
	if parts[1] == "api" {
		return parts[2]
	}
	return parts[2] + "/" + parts[3]
}

// collect makes a bundle of a host and returns its files, without the folder that all are in, and what was told meanwhile.
func collect(t *testing.T, h *fakeHost, tenant string) (files map[string]string, progress string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	var out, told bytes.Buffer
	err := Collect(t.Context(), &rest.Config{Host: server.URL}, &out, Options{
		Tenant: tenant, Version: "v1", Progress: &told, Now: time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC),
	})
	if err != nil {
		t.Fatal(err)
	}
	return unpack(t, &out), told.String()
}

func unpack(t *testing.T, bundle io.Reader) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bundle)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, "support-bundle-20300102-120000/")] = string(text)
	}
}
