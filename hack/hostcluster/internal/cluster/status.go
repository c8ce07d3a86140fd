// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/supervisor"
)

// ErrNotReady is what Status returns for a cluster that does not run or is not ready.
var ErrNotReady = errors.New("the host cluster is not ready")

// Status prints how the cluster is: processes, addresses, and what is not ready. The error is ErrNotReady unless all is well.
func (c *Cluster) Status(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	pid, err := c.first()
	if err != nil {
		fmt.Fprintln(c.out, err)
		return ErrNotReady
	}
	statuses, err := supervisor.ReadStatus(c.layout.Status())
	if err != nil {
		return err
	}
	address, err := c.address()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "clone\t%s\n", c.layout.Root)
	fmt.Fprintf(table, "first process\t%d\n", pid)
	fmt.Fprintf(table, "API server\thttps://%s\n", address)
	fmt.Fprintf(table, "charts\toci://%s/%s (from the machine: http://%s)\n", node.RegistryName, chartRepository, address)
	fmt.Fprintf(table, "node\t%s\n", c.names.Node)
	fmt.Fprintf(table, "logs\t%s\n", c.layout.Logs)
	for _, status := range statuses {
		fmt.Fprintf(table, "%s\t%s\n", status.Name, describe(status))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("print status: %w", err)
	}
	missing, err := c.missing(ctx)
	if err != nil {
		fmt.Fprintln(c.out, "not ready:", err)
		return ErrNotReady
	}
	if len(missing) > 0 {
		fmt.Fprintln(c.out, "not ready:", strings.Join(missing, ", "))
		return ErrNotReady
	}
	fmt.Fprintln(c.out, "node, DNS and Flux are ready")
	return nil
}

func describe(status supervisor.DaemonStatus) string {
	since := status.Since.Format("15:04:05")
	restarts := ""
	if status.Restarts > 0 {
		restarts = fmt.Sprintf(", started again %d times, last end: %s", status.Restarts, status.LastEnd)
	}
	switch {
	case status.PID != 0:
		return "runs since " + since + restarts
	case status.WaitsFor != "":
		return "waits until " + status.WaitsFor
	default:
		return "does not run since " + since + restarts
	}
}
