// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

// revisionsAhead is how far a restored etcd counts on from where the snapshot was: further than anybody can have seen. Who goes by
// what came after the snapshot is then told to read anew, instead of taking what is old for new.
const revisionsAhead = "1000000000"

// snapshotFile is what Snapshot writes and Restore reads, in the cluster's state folder.
const snapshotFile = "snapshot.db"

// Snapshot keeps what etcd has now, in place of what was kept before.
func (c *Cluster) Snapshot(ctx context.Context) error {
	if err := os.Remove(filepath.Join(c.layout.State, snapshotFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return c.runInside(ctx, "etcdctl", "--endpoints="+node.EtcdClient, "snapshot", "save", filepath.Join(node.State, snapshotFile))
}

// Restore brings back what the last snapshot has, as somebody does who has lost everything after it. Containers run on meanwhile, as
// they do on the nodes of a larger cluster.
func (c *Cluster) Restore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*restartTimeout)
	defer cancel()
	const restored = "etcd.restored"
	now, next := filepath.Join(c.layout.State, node.EtcdFolder), filepath.Join(c.layout.State, restored)
	if err := os.RemoveAll(next); err != nil {
		return err
	}
	if err := c.runInside(ctx, "etcdutl", append([]string{
		"snapshot", "restore", filepath.Join(node.State, snapshotFile), "--data-dir=" + filepath.Join(node.State, restored),
		"--bump-revision=" + revisionsAhead, "--mark-compacted",
	}, node.EtcdMember()...)...); err != nil {
		return err
	}
	// An API server that is stopped writes nothing of what it remembers into the past. One that is killed in the end is not there to go on.
	stopped, err := c.signal(ctx, node.APIServerDaemon, "STOP")
	if err != nil {
		return err
	}
	defer func() { _ = c.send(context.WithoutCancel(ctx), stopped.PID, "CONT") }()
	// etcd goes on with the files that it has open until it is killed; it then starts with those that are there.
	if err := unix.Renameat2(unix.AT_FDCWD, now, unix.AT_FDCWD, next, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("put the restored data in place: %w", err)
	}
	for _, daemon := range []string{node.Etcd, node.APIServerDaemon} {
		if err := c.Restart(ctx, daemon); err != nil {
			return err
		}
	}
	return os.RemoveAll(next)
}

// runInside runs one of the programs inside the cluster's namespaces.
func (c *Cluster) runInside(ctx context.Context, program string, args ...string) error {
	first, err := c.first()
	if err != nil {
		return err
	}
	enter := []string{"--target=" + strconv.Itoa(first), "--mount", "--net", "--pid", "--", node.Bin(program)}
	if out, err := exec.CommandContext(ctx, "nsenter", append(enter, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", program, err, out)
	}
	return nil
}
