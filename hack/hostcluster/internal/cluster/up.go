// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/cgroup"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/manifests"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/pki"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/prereq"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/progress"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/supervisor"
)

const (
	// startParts is the number of parts that a start tells of.
	startParts = 6
	// startTimeout bounds a whole start, reviveTimeout the wait for one that runs to get ready by itself, healthTimeout one
	// look at a cluster that may be up.
	startTimeout  = 5 * time.Minute
	reviveTimeout = 90 * time.Second
	healthTimeout = 5 * time.Second
)

// Build builds whatever is missing in the cache, installing the Debian packages that it needs.
func (c *Cluster) Build(ctx context.Context) error {
	if c.cache.Complete() {
		fmt.Fprintf(c.out, "all programs are built: %s\n", c.cache.Dir)
		return nil
	}
	return c.build(ctx)
}

func (c *Cluster) build(ctx context.Context) error {
	if err := prereq.Check(prereq.ToRun, c.layout.Root); err != nil {
		return err
	}
	if !c.cache.Complete() {
		if err := prereq.Check(prereq.ToBuild, c.cache.Dir); err != nil {
			return err
		}
	}
	if err := prereq.Install(ctx, c.out); err != nil {
		return err
	}
	return c.cache.Ensure(ctx, c.out)
}

// UpOptions are a person's choices for Up.
type UpOptions struct {
	// Fsync makes etcd write durably, for measurements. It counts only when the cluster is started.
	Fsync bool
}

// Up brings the cluster up, whatever state it is in, and returns when node, DNS and Flux are ready. If they are, it returns
// at once.
func (c *Cluster) Up(ctx context.Context, options UpOptions) error {
	if err := prereq.Root(); err != nil {
		return err
	}
	lock, err := c.layout.Acquire("up")
	if err != nil {
		return err
	}
	defer lock.Release()
	if c.healthy(ctx) {
		fmt.Fprintln(c.out, "the host cluster is up")
		c.announce()
		return nil
	}
	if err := c.build(ctx); err != nil {
		return err
	}
	running, err := supervisor.Find(c.layout.Root)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		err := c.bring(ctx, options, reviveTimeout)
		if err == nil {
			c.announce()
			return nil
		}
		fmt.Fprintf(c.out, "what runs does not get ready, so it is started again: %v\n", err)
		if err := c.stop(ctx); err != nil {
			return err
		}
	}
	if err := c.bring(ctx, options, startTimeout); err != nil {
		return err
	}
	c.announce()
	return nil
}

// bring starts the cluster, unless it runs, and gets it ready within the time.
func (c *Cluster) bring(ctx context.Context, options UpOptions, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	printer := progress.New(c.out, startParts, time.Now)
	if err := printer.Part(ctx, "namespaces, mounts and network", nil, func(ctx context.Context) error {
		return c.ensureSupervisor(ctx, options)
	}); err != nil {
		return err
	}
	if err := c.fill(ctx, printer); err != nil {
		return errors.Join(err, c.explain(context.WithoutCancel(ctx)))
	}
	printer.Total("the host cluster is up")
	return nil
}

// healthy looks once whether there is nothing to do.
func (c *Cluster) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	if _, err := c.first(); err != nil {
		return false
	}
	missing, err := c.missing(ctx)
	return err == nil && len(missing) == 0
}

// ensureSupervisor starts the cluster's first process, unless it runs.
func (c *Cluster) ensureSupervisor(ctx context.Context, options UpOptions) error {
	pids, err := supervisor.Find(c.layout.Root)
	if err != nil {
		return err
	}
	if len(pids) == 1 {
		return c.writeKubeconfig(ctx)
	}
	// More than one cannot be, unless two starts once met; none of them is to be trusted then.
	if err := c.stop(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(c.layout.State, 0o755); err != nil {
		return fmt.Errorf("make folder for state: %w", err)
	}
	if err := cgroup.Create(c.names.CgroupRoot); err != nil {
		return err
	}
	listener, err := c.listen()
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	if err := errors.Join(os.RemoveAll(c.layout.Status()), c.writeStart(listener)); err != nil {
		return fmt.Errorf("write down the start: %w", err)
	}
	settings := supervisor.Settings{Root: c.layout.Root, Cache: c.cache.Dir, Fsync: options.Fsync}
	if err := supervisor.Launch(c.layout, settings, listener); err != nil {
		return err
	}
	return c.writeKubeconfig(ctx)
}

// listen opens the loopback port: the one remembered, else the one that the clone's path gives, else the next that is free.
func (c *Cluster) listen() (*net.TCPListener, error) {
	first := c.names.Port
	if remembered, err := c.port(); err == nil {
		first = remembered
	}
	const tries = 100
	var last error
	for port := first; port < first+tries; port++ {
		listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.ParseIP(loopback), Port: port})
		if err == nil {
			return listener, nil
		}
		last = err
	}
	return nil, fmt.Errorf("no free port from %d on: %w", first, last)
}

func (c *Cluster) writeStart(listener *net.TCPListener) error {
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return fmt.Errorf("read the listener's address: %w", err)
	}
	now := time.Now().UTC().Format(time.RFC3339Nano)
	return errors.Join(
		os.WriteFile(c.layout.Port(), []byte(port+"\n"), 0o644),
		os.WriteFile(c.layout.Started(), []byte(now+"\n"), 0o644),
		os.WriteFile(c.layout.Version(), []byte(filepath.Base(c.cache.Dir)+"\n"), 0o644),
	)
}

// writeKubeconfig waits for the supervisor to have made the certificates, and makes the kubeconfig for the machine of the
// one for daemons.
func (c *Cluster) writeKubeconfig(ctx context.Context) error {
	address, err := c.address()
	if err != nil {
		return err
	}
	complete := filepath.Join(c.layout.State, "pki", pki.Complete)
	err = poll(ctx, func(context.Context) (bool, error) {
		if _, err := c.first(); err != nil {
			return false, errors.Join(errors.New("the cluster's first process ended at once"), c.logTail("supervisor"))
		}
		_, err := os.Stat(complete)
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for certificates: %w", err)
	}
	return pki.Redirect(filepath.Join(c.layout.State, "pki", pki.Admin+".kubeconfig"), c.layout.Kubeconfig(), "https://"+address)
}

// fill brings images and objects into the cluster while it starts.
func (c *Cluster) fill(ctx context.Context, printer *progress.Printer) error {
	group, both := errgroup.WithContext(ctx)
	group.Go(func() error {
		return printer.Part(both, "images into containerd", c.daemonsDetail, c.importImages)
	})
	group.Go(func() error {
		if err := printer.Part(both, "control plane", c.daemonsDetail, c.awaitAPIServer); err != nil {
			return err
		}
		return printer.Part(both, "DNS, storage class and Flux applied", nil, c.applyManifests)
	})
	group.Go(func() error {
		return printer.Part(both, "vCluster chart into the registry", nil, c.pushOwnChart)
	})
	if err := group.Wait(); err != nil {
		return err
	}
	return printer.Part(ctx, "node, network policies, DNS and Flux ready", func() string { return c.missingDetail(ctx) }, c.awaitReady)
}

func (c *Cluster) applyManifests(ctx context.Context) error {
	config, err := c.config()
	if err != nil {
		return err
	}
	return manifests.Apply(ctx, config, c.cache.CRDs())
}

// announce says how the cluster is used.
func (c *Cluster) announce() {
	running, err := os.ReadFile(c.layout.Version())
	if err == nil && string(running) != filepath.Base(c.cache.Dir)+"\n" {
		fmt.Fprintln(c.out, "it runs programs of another version than this clone asks for: \"make down\" and \"make up\" change that")
	}
	fmt.Fprintf(c.out, "export KUBECONFIG=%s\n", c.layout.Kubeconfig())
}
