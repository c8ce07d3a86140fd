// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/manifests"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/supervisor"
)

const (
	pollInterval = 200 * time.Millisecond
	// tailBytes is how much of a log's end an error shows.
	tailBytes = 1500
)

// poll asks met until it says yes, fails, or ctx ends.
func poll(ctx context.Context, met wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextCancel(ctx, pollInterval, true, met)
}

func (c *Cluster) awaitAPIServer(ctx context.Context) error {
	client, err := c.client()
	if err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) (bool, error) {
		if _, err := c.first(); err != nil {
			return false, err
		}
		_, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, nil
	})
}

func (c *Cluster) awaitReady(ctx context.Context) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		if _, err := c.first(); err != nil {
			return false, err
		}
		missing, err := c.missing(ctx)
		return err == nil && len(missing) == 0, nil
	})
}

// missing returns what is not ready: daemons by their own account, the rest by the API server's.
func (c *Cluster) missing(ctx context.Context) ([]string, error) {
	statuses, err := supervisor.ReadStatus(c.layout.Status())
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, status := range statuses {
		if status.PID == 0 {
			missing = append(missing, status.Name)
		}
	}
	if len(statuses) == 0 {
		return []string{"daemons"}, nil
	}
	if len(missing) > 0 {
		return missing, nil
	}
	text, err := os.ReadFile(c.layout.Started())
	if err != nil {
		return nil, fmt.Errorf("read when the cluster was started: %w", err)
	}
	started, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fmt.Errorf("read when the cluster was started: %w", err)
	}
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	missing, err = manifests.Missing(ctx, client, c.names.Node, started)
	if err != nil {
		return nil, err
	}
	there, err := c.hasOwnChart(ctx)
	if err == nil && !there {
		missing = append(missing, "vCluster chart")
	}
	return missing, err
}

// missingDetail tells what a start still waits for.
func (c *Cluster) missingDetail(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	missing, err := c.missing(ctx)
	if err != nil {
		return err.Error()
	}
	return "waiting for " + strings.Join(missing, ", ")
}

// daemonsDetail tells which daemons are not running yet.
func (c *Cluster) daemonsDetail() string {
	statuses, err := supervisor.ReadStatus(c.layout.Status())
	if err != nil {
		return err.Error()
	}
	var waiting []string
	for _, status := range statuses {
		if status.PID == 0 {
			waiting = append(waiting, strings.TrimSpace(status.Name+" "+status.WaitsFor))
		}
	}
	if len(waiting) == 0 {
		return "all daemons run"
	}
	return "not running: " + strings.Join(waiting, ", ")
}

// explain finds what most likely kept the cluster from coming up.
func (c *Cluster) explain(ctx context.Context) error {
	statuses, err := supervisor.ReadStatus(c.layout.Status())
	if err != nil {
		return err
	}
	if _, err := c.first(); err != nil {
		return errors.Join(errors.New("the supervisor ended"), c.logTail("supervisor"))
	}
	for _, status := range statuses {
		if status.Restarts > 0 {
			return errors.Join(fmt.Errorf("%s was started again %d times, last: %s", status.Name, status.Restarts, status.LastEnd),
				c.logTail(status.Name))
		}
	}
	return fmt.Errorf("%s; logs are in %s; \"make down\" and \"make up\" start afresh", c.missingDetail(ctx), c.layout.Logs)
}

// logTail is the end of a daemon's log as an error.
func (c *Cluster) logTail(daemon string) error {
	text, err := os.ReadFile(c.layout.Log(daemon))
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	return fmt.Errorf("end of %s:\n%s", c.layout.Log(daemon), text[max(0, len(text)-tailBytes):])
}
