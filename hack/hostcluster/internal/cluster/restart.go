// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/supervisor"
)

// restartTimeout bounds how long a daemon may take to run again: the supervisor waits longer from one end to the next.
const restartTimeout = time.Minute

// Restart kills a daemon as a crash would, and waits until the supervisor has started it again. After the API server it also
// waits until that serves.
func (c *Cluster) Restart(ctx context.Context, daemon string) error {
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	before, err := c.signal(ctx, daemon, "KILL")
	if err != nil {
		return err
	}
	if err := poll(ctx, func(context.Context) (bool, error) {
		now, err := c.daemon(daemon)
		return err == nil && now.Restarts > before.Restarts && now.PID != 0, err
	}); err != nil {
		return fmt.Errorf("wait for %s to run again: %w", daemon, err)
	}
	if daemon == node.APIServerDaemon {
		return c.awaitAPIServer(ctx)
	}
	return nil
}

// signal sends a daemon a signal, and tells how the daemon was before.
func (c *Cluster) signal(ctx context.Context, daemon, signal string) (supervisor.DaemonStatus, error) {
	before, err := c.daemon(daemon)
	if err != nil {
		return before, err
	}
	if before.PID == 0 {
		return before, fmt.Errorf("%s does not run", daemon)
	}
	if err := c.send(ctx, before.PID, signal); err != nil {
		return before, fmt.Errorf("send %s to %s: %w", signal, daemon, err)
	}
	return before, nil
}

// send sends a signal to a process that is numbered as inside the cluster's namespaces.
func (c *Cluster) send(ctx context.Context, pid int, signal string) error {
	first, err := c.first()
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, "nsenter", "--target="+strconv.Itoa(first), "--mount", "--pid", "--",
		"kill", "-"+signal, strconv.Itoa(pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (c *Cluster) daemon(name string) (supervisor.DaemonStatus, error) {
	if _, err := c.first(); err != nil {
		return supervisor.DaemonStatus{}, err
	}
	statuses, err := supervisor.ReadStatus(c.layout.Status())
	if err != nil {
		return supervisor.DaemonStatus{}, err
	}
	return findDaemon(statuses, name)
}

// findDaemon gives the daemon of that name, or an error that names all there are.
func findDaemon(statuses []supervisor.DaemonStatus, name string) (supervisor.DaemonStatus, error) {
	var known []string
	for _, status := range statuses {
		known = append(known, status.Name)
	}
	i := slices.Index(known, name)
	if i < 0 {
		return supervisor.DaemonStatus{}, fmt.Errorf("there is no daemon %q; there are %s", name, strings.Join(known, ", "))
	}
	return statuses[i], nil
}
