// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prereq checks what a host cluster needs of its machine, and installs the Debian packages that are missing.
package prereq

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

const gib = 1 << 30

// Needs are the least amounts, in bytes, that a command asks of the machine.
type Needs struct {
	// Disk is the free space at the folder that Check is given.
	Disk uint64
	// Memory is the memory of the whole machine.
	Memory uint64
}

// Needs of the commands. A cold build writes Go's module and build caches and the binaries.
var (
	ToRun   = Needs{Disk: 3 * gib, Memory: 4 * gib}
	ToBuild = Needs{Disk: 15 * gib, Memory: 6 * gib}
)

// Check returns one error for each thing that is missing, joined, each on a line of its own and saying what to do. The folder
// is where space is looked for; it need not be there yet.
func Check(needs Needs, folder string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the host cluster runs on Linux only, this is %s: use a Linux machine", runtime.GOOS)
	}
	return errors.Join(Root(), debian(), golang(), disk(needs.Disk, folder), memory(needs.Memory), overlay())
}

// Root returns an error that says what to do unless this process is root's.
func Root() error {
	if os.Geteuid() != 0 {
		return errors.New("not root: run this as root, since a node makes namespaces, mounts and cgroups")
	}
	return nil
}

func debian() error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("no apt-get: use Debian 12 or later, or a system made of it such as Ubuntu")
	}
	return nil
}

func golang() error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("no go on PATH: install Go 1.26 or later")
	}
	return nil
}

func disk(need uint64, folder string) error {
	var found unix.Statfs_t
	err := unix.Statfs(folder, &found)
	if errors.Is(err, unix.ENOENT) && folder != filepath.Dir(folder) {
		return disk(need, filepath.Dir(folder))
	}
	if err != nil {
		return fmt.Errorf("ask for free space at %s: %w", folder, err)
	}
	free := found.Bavail * uint64(max(found.Bsize, 0))
	if free < need {
		return fmt.Errorf("%d GiB free at %s, %d GiB needed: make room", free/gib, folder, need/gib)
	}
	return nil
}

func memory(need uint64) error {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return fmt.Errorf("ask for memory: %w", err)
	}
	// The kernel keeps some for itself, so a machine sold with 4 GiB shows less.
	if total := info.Totalram * uint64(info.Unit); total < need/10*9 {
		return fmt.Errorf("%d MiB of memory, %d GiB needed: use a larger machine", total>>20, need/gib)
	}
	return nil
}

func overlay() error {
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return fmt.Errorf("ask for file systems: %w", err)
	}
	if !hasFileSystem(string(known), "overlay") && exec.Command("modprobe", "overlay").Run() != nil {
		return errors.New("no overlay file system: use a kernel with CONFIG_OVERLAY_FS")
	}
	return nil
}
