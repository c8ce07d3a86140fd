// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sync/errgroup"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/chartregistry"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/clone"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/forwarder"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/pki"
)

// RunSupervisor runs every daemon, the chart registry and the forwarder until it is told to stop by SIGTERM. Then it stops
// the daemons in the reverse order of their start.
func RunSupervisor(settings Settings) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	names := clone.NamesOf(settings.Root)
	if err := writeConfiguration(settings.Root, names); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return fmt.Errorf("take over the listener: %w", err)
	}
	registry, err := net.Listen("tcp", node.Registry)
	if err != nil {
		return fmt.Errorf("listen for charts: %w", err)
	}
	probe, err := newProbe(names.Node)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return chartregistry.Serve(ctx, registry, filepath.Join(node.State, "registry")) })
	group.Go(func() error {
		return forwarder.Serve(ctx, listener, forwarder.Backends{
			APIServer: node.APIServer, Registry: node.Registry, Service: probe.service, Passed: probe.passed,
		})
	})
	group.Go(func() error { return openVolumes(ctx, node.HostPathVolumes) })
	group.Go(func() error {
		return runDaemons(ctx, node.Daemons(names, node.Options{Fsync: settings.Fsync}), probe.gates(ctx))
	})
	err = group.Wait()
	slog.Info("supervisor ends", "error", err)
	return err
}

// writeConfiguration makes the certificates, if they are not there, and every configuration file.
func writeConfiguration(root string, names clone.Names) error {
	site := pki.Site{
		Node: names.Node, NodeAddress: node.IP(node.Address), ServiceAddress: node.IP(node.ServiceAddress),
		AuthService: node.IP(node.AuthService), AuthServiceHost: node.AuthServiceHost,
	}
	if err := pki.Ensure(filepath.Join(node.State, "pki"), "https://"+node.APIServer, site); err != nil {
		return err
	}
	files, err := node.Files(names)
	if err != nil {
		return err
	}
	for path, contents := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, contents, 0o644)); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	return writeAuthentication(root)
}

// writeAuthentication makes the API server's configuration of tokens of the one that the platform ships.
func writeAuthentication(root string) error {
	shipped, err := os.ReadFile(filepath.Join(root, "config", "authn", "authentication.yaml"))
	if err != nil {
		return fmt.Errorf("read who a token is: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(node.State, "pki", "ca.crt"))
	if err != nil {
		return fmt.Errorf("read authority: %w", err)
	}
	contents, err := node.AuthenticationFor(shipped, authority)
	if err != nil {
		return err
	}
	return os.WriteFile(node.Authentication, contents, 0o644)
}
