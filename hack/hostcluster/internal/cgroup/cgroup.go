// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup makes and removes the control group that holds all pods of one host cluster, in every hierarchy of cgroup
// version 1 or in the one of version 2.
package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// mount is where every system mounts its control groups.
const mount = "/sys/fs/cgroup"

// settle is how long a control group may stay busy after its last process was killed.
const settle = 10 * time.Second

// Create makes the control group name (with a leading slash) in every hierarchy.
func Create(name string) error {
	hierarchies, err := hierarchies(mount)
	if err != nil {
		return err
	}
	for _, hierarchy := range hierarchies {
		if err := delegate(hierarchy); err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(hierarchy, name), 0o755); err != nil {
			return fmt.Errorf("make control group: %w", err)
		}
	}
	return nil
}

// Remove ends every process in the control group name and removes it with all below it, in every hierarchy. It is no error
// if there is none.
func Remove(ctx context.Context, name string) error {
	hierarchies, err := hierarchies(mount)
	if err != nil {
		return err
	}
	var errs []error
	for _, hierarchy := range hierarchies {
		errs = append(errs, removeTree(ctx, filepath.Join(hierarchy, name)))
	}
	return errors.Join(errs...)
}

// Exists says whether the control group is there in any hierarchy.
func Exists(name string) (bool, error) {
	hierarchies, err := hierarchies(mount)
	if err != nil {
		return false, err
	}
	for _, hierarchy := range hierarchies {
		if _, err := os.Stat(filepath.Join(hierarchy, name)); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// hierarchies returns the folders at the top of each hierarchy under base: base itself on version 2, else its children.
func hierarchies(base string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(base, "cgroup.controllers")); err == nil {
		return []string{base}, nil
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil, fmt.Errorf("find control groups: %w", err)
	}
	var found []string
	for _, entry := range entries {
		// Links such as cpu lead to a hierarchy that is listed under its full name.
		if entry.IsDir() {
			found = append(found, filepath.Join(base, entry.Name()))
		}
	}
	return found, nil
}

// delegate lets children use every controller of a version 2 hierarchy. Version 1 needs nothing.
func delegate(hierarchy string) error {
	controllers, err := os.ReadFile(filepath.Join(hierarchy, "cgroup.controllers"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read controllers: %w", err)
	}
	for controller := range strings.FieldsSeq(string(controllers)) {
		err := os.WriteFile(filepath.Join(hierarchy, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
		if err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("enable controller %s: %w", controller, err)
		}
	}
	return nil
}

// removeTree removes from the leaves up, and again until nothing is left: the kernel frees killed processes in its own time.
func removeTree(ctx context.Context, top string) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for {
		err := removeOnce(top)
		if err == nil || !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes in %s do not end: %w", top, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func removeOnce(top string) error {
	var folders []string
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("read control group: %w", err)
	}
	var errs []error
	for _, folder := range slices.Backward(folders) {
		if err := killAll(folder); err != nil {
			return err
		}
		if err := unix.Rmdir(folder); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("remove control group %s: %w", folder, err))
		}
	}
	return errors.Join(errs...)
}

// killAll kills the processes that are in the control group itself.
func killAll(folder string) error {
	listed, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list processes of control group: %w", err)
	}
	for field := range strings.FieldsSeq(string(listed)) {
		pid, err := strconv.Atoi(field)
		if err != nil || pid <= 1 {
			continue
		}
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	return nil
}
