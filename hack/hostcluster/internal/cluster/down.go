// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/cgroup"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/prereq"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/removal"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/supervisor"
)

// Down ends the cluster and removes everything of it: processes, mounts, network, control groups and state. Logs stay. It
// needs nothing to be healthy, and does no harm if nothing is there.
func (c *Cluster) Down(ctx context.Context) error {
	if err := prereq.Root(); err != nil {
		return err
	}
	lock, err := c.layout.Acquire("down")
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := c.stop(ctx); err != nil {
		return err
	}
	if err := unmountUnder(c.layout.State); err != nil {
		return err
	}
	if err := removal.Tree(c.layout.State); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "the host cluster is down; logs are in %s\n", c.layout.Logs)
	return nil
}

// stop ends every process of the cluster and removes its control groups. State stays. There is no use in a gentle end: the
// kernel takes processes, mounts and network away together when the first process is gone.
func (c *Cluster) stop(ctx context.Context) error {
	pids, err := supervisor.Find(c.layout.Root)
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	err = poll(ctx, func(context.Context) (bool, error) {
		left, err := supervisor.Find(c.layout.Root)
		return len(left) == 0, err
	})
	if err != nil {
		return fmt.Errorf("wait for processes to end: %w", err)
	}
	return cgroup.Remove(ctx, c.names.CgroupRoot)
}

// unmountUnder takes away what is mounted below folder in the machine's own namespace. The cluster mounts nothing there, but
// what a person mounted would keep the folder from being removed, or be emptied with it.
func unmountUnder(folder string) error {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	points := mountsUnder(table, folder)
	for _, point := range points {
		if err := unix.Unmount(point, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return nil
}

// mountsUnder reads mount points from a mountinfo table, the last mounted first.
func mountsUnder(table []byte, folder string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		point := unescape.Replace(fields[4])
		if point == folder || strings.HasPrefix(point, folder+"/") {
			points = append(points, point)
		}
	}
	slices.Reverse(points)
	return points
}
