// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/fsnotify/fsnotify"
)

// openVolumes lets every user write to the volumes in folder, as soon as each is made, until ctx ends. The provisioner makes
// them for root alone, and kubelet changes neither owner nor mode of a volume on the node's disk, so a pod that is not root
// could not use its volume. Other pods do not get at it either way.
func openVolumes(ctx context.Context, folder string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch volumes: %w", err)
	}
	defer func() { _ = watcher.Close() }()
	if err := watcher.Add(folder); err != nil {
		return fmt.Errorf("watch volumes: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-watcher.Events:
			if event.Has(fsnotify.Create) {
				openVolume(event.Name)
			}
		case err := <-watcher.Errors:
			slog.Warn("a volume may have stayed closed", "error", err)
		}
	}
}

func openVolume(path string) {
	if err := os.Chmod(path, 0o777); err != nil && !errors.Is(err, os.ErrNotExist) {
		slog.Warn("volume stays closed to pods that are not root", "error", err)
	}
}
