// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/clone"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

// setUpMounts makes the mount namespace the cluster's own. Everything that daemons write lies in the clone's state folder or
// in memory; nothing that is mounted here is seen by the machine, and all of it ends with the last process.
func setUpMounts(layout clone.Layout, cache string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cut mounts off from the machine's: %w", err)
	}
	// Containers take over mounts that kubelet makes after their start, so inside the namespace they are shared.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts with containers: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := memory("/run", "mode=755"); err != nil {
		return err
	}
	return errors.Join(
		bind(layout.State, node.State),
		bind(layout.Logs, node.Logs),
		bind(cache, node.Cache),
		privateTemporary(layout, cache),
		memory("/var/lib/cni", "mode=755"),
		memory("/var/log", "mode=755"),
	)
}

// privateTemporary gives the namespace a /tmp of its own: the provisioner's folder in it is the same for every clone. A clone
// or a cache that itself lies under /tmp stays where it is.
func privateTemporary(layout clone.Layout, cache string) error {
	kept := []string{layout.Root, cache}
	for i, folder := range kept {
		if !strings.HasPrefix(folder, "/tmp/") {
			continue
		}
		if err := bind(folder, fmt.Sprintf("%s/kept/%d", node.Base, i)); err != nil {
			return err
		}
	}
	if err := memory("/tmp", "mode=1777"); err != nil {
		return err
	}
	for i, folder := range kept {
		if !strings.HasPrefix(folder, "/tmp/") {
			continue
		}
		if err := bind(fmt.Sprintf("%s/kept/%d", node.Base, i), folder); err != nil {
			return err
		}
	}
	return bind(filepath.Join(node.State, "volumes"), node.HostPathVolumes)
}

// bind shows the folder from, which is made if need be, at the path to as well.
func bind(from, to string) error {
	if err := errors.Join(os.MkdirAll(from, 0o755), os.MkdirAll(to, 0o755)); err != nil {
		return fmt.Errorf("make folder to mount: %w", err)
	}
	if err := unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", from, to, err)
	}
	return nil
}

// memory mounts an empty file system that ends with the namespace.
func memory(at, options string) error {
	if err := os.MkdirAll(at, 0o755); err != nil {
		return fmt.Errorf("make folder to mount at: %w", err)
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mount memory at %s: %w", at, err)
	}
	return nil
}
