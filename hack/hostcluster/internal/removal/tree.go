// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package removal removes folders that resist.
package removal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Flags of a file that forbid its removal, as chattr +i and +a set them.
const (
	immutable  = 0x10
	appendOnly = 0x20
)

// Tree removes folder and everything in it, also files that are marked immutable. It is no error if there is none.
func Tree(folder string) error {
	err := os.RemoveAll(folder)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("remove %s: %w", folder, err)
	}
	if err := makeMutable(folder); err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("remove %s: %w", folder, err)
	}
	return nil
}

// makeMutable takes the flags from every file and folder.
func makeMutable(folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("look for immutable files: %w", err)
		}
		if !entry.IsDir() && !entry.Type().IsRegular() {
			return nil
		}
		return clearFlags(path)
	})
}

func clearFlags(path string) error {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("look for immutable files: %w", err)
	}
	defer func() { _ = file.Close() }()
	flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read flags of %s: %w", path, err)
	}
	if flags&(immutable|appendOnly) == 0 {
		return nil
	}
	if err := unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, int(flags&^(immutable|appendOnly))); err != nil {
		return fmt.Errorf("make %s mutable: %w", path, err)
	}
	return nil
}
