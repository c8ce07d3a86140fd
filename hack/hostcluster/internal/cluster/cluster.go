// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster does what the driver's commands ask for: it brings the clone's host cluster up and down, tells how it is,
// and puts images and charts into it.
package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/clone"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/supervisor"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/toolchain"
)

// loopback is where the cluster is reached from the machine.
const loopback = "127.0.0.1"

// Cluster is the host cluster of one clone, whether it runs or not.
type Cluster struct {
	layout clone.Layout
	names  clone.Names
	cache  toolchain.Cache
	// out is for what a person reads.
	out io.Writer
}

// Open finds the cluster of the clone that holds folder (the working directory if empty). Words for a person go to out.
func Open(ctx context.Context, folder string, out io.Writer) (*Cluster, error) {
	root, err := clone.FindRoot(folder)
	if err != nil {
		return nil, err
	}
	cache, err := toolchain.Find(ctx, root)
	if err != nil {
		return nil, err
	}
	return &Cluster{layout: clone.LayoutOf(root), names: clone.NamesOf(root), cache: cache, out: out}, nil
}

// first returns the cluster's first process as the machine numbers it, or an error that says what to do if there is none.
func (c *Cluster) first() (int, error) {
	pids, err := supervisor.Find(c.layout.Root)
	if err != nil {
		return 0, err
	}
	if len(pids) == 0 {
		return 0, fmt.Errorf("the host cluster of %s does not run: start it with \"make up\"", c.layout.Root)
	}
	return pids[0], nil
}

// port is the loopback port of the running cluster.
func (c *Cluster) port() (int, error) {
	text, err := os.ReadFile(c.layout.Port())
	if err != nil {
		return 0, fmt.Errorf("find the cluster's port, is it up? %w", err)
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("read the cluster's port from %s: %w", c.layout.Port(), err)
	}
	return port, nil
}

// address is HOST:PORT of the running cluster on the machine.
func (c *Cluster) address() (string, error) {
	port, err := c.port()
	if err != nil {
		return "", err
	}
	return loopback + ":" + strconv.Itoa(port), nil
}

// config is how the administrator reaches the API server from the machine.
func (c *Cluster) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.layout.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.Timeout = 10 * time.Second
	config.QPS = -1
	return config, nil
}

func (c *Cluster) client() (kubernetes.Interface, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

// programs is the folder of binaries to use: those that this clone asks for, or, until they are built, those that the cluster
// was started with.
func (c *Cluster) programs() string {
	if !c.cache.Complete() {
		version, err := os.ReadFile(c.layout.Version())
		running := filepath.Join(filepath.Dir(c.cache.Dir), strings.TrimSpace(string(version)), "bin")
		if _, statErr := os.Stat(running); err == nil && statErr == nil {
			return running
		}
	}
	return c.cache.Bin()
}

// inside is a file of the running cluster's mount namespace as the machine sees it. It stays short enough for a socket's
// address, however long the clone's path is.
func inside(pid int, path string) string { return fmt.Sprintf("/proc/%d/root%s", pid, path) }
