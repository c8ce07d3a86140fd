// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clone says where a clone of the repository is, what its cluster is called, and where its state lies.
package clone

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// marker is the file by which a clone's top folder is known.
const marker = "hack/hostcluster/tools/go.mod"

// FindRoot returns the real path of the clone that holds folder, or of folder's nearest parent that is a clone. An empty
// folder stands for the working directory. It is an error if no parent is a clone.
func FindRoot(folder string) (string, error) {
	if folder == "" {
		working, err := os.Getwd()
		if err != nil {
			return "", fmt.Errorf("find working directory: %w", err)
		}
		folder = working
	}
	resolved, err := realPath(folder)
	if err != nil {
		return "", err
	}
	for dir := resolved; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, marker))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("look for a clone: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a clone of this repository: change into one, or name it with --clone", resolved)
		}
	}
}

// realPath follows links, so that one clone has one name however it is reached.
func realPath(folder string) (string, error) {
	absolute, err := filepath.Abs(folder)
	if err != nil {
		return "", fmt.Errorf("make %s absolute: %w", folder, err)
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if err != nil {
		return "", fmt.Errorf("find clone: %w", err)
	}
	return resolved, nil
}
