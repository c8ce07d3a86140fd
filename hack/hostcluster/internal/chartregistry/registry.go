// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chartregistry serves an OCI registry whose contents outlive its process.
package chartregistry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Serve serves the registry whose contents lie in folder on listener, plain HTTP, until ctx ends.
func Serve(ctx context.Context, listener net.Listener, folder string) error {
	handler, err := open(folder)
	if err != nil {
		return err
	}
	server := http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve chart registry: %w", err)
	}
	return nil
}

// open returns the registry's handler with everything in it that was ever pushed to folder.
func open(folder string) (http.Handler, error) {
	blobs := filepath.Join(folder, "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		return nil, fmt.Errorf("make folder of chart registry: %w", err)
	}
	// The library keeps blobs on disk but manifests in memory only: the journal is what brings them back.
	plain := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)), registry.Logger(log.New(io.Discard, "", 0)))
	journal := journal{folder: filepath.Join(folder, "manifests"), next: plain}
	if err := journal.replay(); err != nil {
		return nil, err
	}
	return journal, nil
}
