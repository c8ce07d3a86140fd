// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Lock keeps two commands from changing one cluster at a time. The kernel frees it when its holder ends, however it ends.
type Lock struct{ file *os.File }

// Acquire takes the clone's lock at once or returns an error that says who holds it. command is what that error shows to
// others while the lock is held here.
func (l Layout) Acquire(command string) (*Lock, error) {
	if err := l.MakeLocal(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(l.Lock, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = heldError(l.Lock)
		}
		return nil, errors.Join(err, file.Close())
	}
	holder := fmt.Sprintf("%q, process %d", command, os.Getpid())
	if err := errors.Join(file.Truncate(0), writeAt(file, holder)); err != nil {
		return nil, errors.Join(fmt.Errorf("name the holder in %s: %w", l.Lock, err), file.Close())
	}
	return &Lock{file: file}, nil
}

// Release frees the lock.
func (l *Lock) Release() {
	// Closing frees it whatever the error says, and what was written is for errors of others only.
	_ = l.file.Close()
}

func writeAt(file *os.File, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

func heldError(path string) error {
	holder, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read who holds %s: %w", path, err)
	}
	return fmt.Errorf("this clone's cluster is being changed by %s: wait until it ends", strings.TrimSpace(string(holder)))
}
