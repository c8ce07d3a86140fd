// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package chartregistry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
)

// maxManifest bounds a manifest's size, in bytes, as registries do.
const maxManifest = 4 << 20

// journal keeps every manifest that next accepts in a file, by its path, and can put them all back.
type journal struct {
	folder string
	next   http.Handler
}

// entry is the file of one manifest.
type entry struct {
	Path, ContentType string
	Body              []byte
}

func (j journal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.URL.Path, "/manifests/") || (r.Method != http.MethodPut && r.Method != http.MethodDelete) {
		j.next.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
	if err != nil {
		http.Error(w, "manifest too large or cut off", http.StatusRequestEntityTooLarge)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer := httptest.NewRecorder()
	j.next.ServeHTTP(answer, r)
	if answer.Code < http.StatusMultipleChoices {
		if err := j.record(r, body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	copyAnswer(w, answer)
}

func (j journal) record(r *http.Request, body []byte) error {
	file := j.file(r.URL.Path)
	if r.Method == http.MethodDelete {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget manifest: %w", err)
		}
		return nil
	}
	data, err := json.Marshal(entry{Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"), Body: body})
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	if err := os.WriteFile(file+".partial", data, 0o644); err != nil {
		return fmt.Errorf("keep manifest: %w", err)
	}
	return os.Rename(file+".partial", file)
}

// replay puts the manifests back. Indexes name other manifests, so what is refused is tried again after the rest.
func (j journal) replay() error {
	if err := os.MkdirAll(j.folder, 0o755); err != nil {
		return fmt.Errorf("make folder of manifests: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(j.folder, "*.json"))
	if err != nil {
		return fmt.Errorf("list manifests: %w", err)
	}
	for len(files) > 0 {
		var refused []string
		for _, file := range files {
			accepted, err := j.put(file)
			if err != nil {
				return err
			}
			if !accepted {
				refused = append(refused, file)
			}
		}
		if len(refused) == len(files) {
			return fmt.Errorf("chart registry refuses its own %d manifests in %s: remove them", len(files), j.folder)
		}
		files = refused
	}
	return nil
}

func (j journal) put(file string) (accepted bool, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("read manifest: %w", err)
	}
	var kept entry
	if err := json.Unmarshal(data, &kept); err != nil {
		return false, fmt.Errorf("read manifest %s: %w", file, err)
	}
	request := httptest.NewRequest(http.MethodPut, kept.Path, bytes.NewReader(kept.Body))
	request.Header.Set("Content-Type", kept.ContentType)
	answer := httptest.NewRecorder()
	j.next.ServeHTTP(answer, request)
	return answer.Code < http.StatusMultipleChoices, nil
}

func (j journal) file(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(j.folder, hex.EncodeToString(sum[:])+".json")
}

func copyAnswer(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	// The client is gone if this does not work; there is no one to tell.
	_, _ = w.Write(answer.Body.Bytes())
}
