// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostnetwork finds out what CloudSpaces need to know of the host cluster's network and the PlatformConfig leaves out: the
// addresses of its API servers, and of the resolver that CloudSpaces ask.
package hostnetwork

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// apiServerKey is the Service of the API servers, and the EndpointSlice that they keep for it.
var apiServerKey = client.ObjectKey{Namespace: "default", Name: "kubernetes"}

// ErrChanged says that the host's network has what it had not when the operator started.
var ErrChanged = errors.New("the network of the host cluster has changed")

// Complete gives the network with everything that was left out.
func Complete(ctx context.Context, reader client.Reader, network configv1alpha1.Network) (configv1alpha1.Network, error) {
	var errs []error
	if len(network.APIServers) == 0 {
		servers, err := apiServers(ctx, reader)
		network.APIServers, errs = servers, append(errs, err)
	}
	if network.Resolver == "" {
		address, err := resolver(ctx, reader)
		network.Resolver, errs = address, append(errs, err)
	}
	return network, errors.Join(errs...)
}

// apiServers are the addresses behind the Service kubernetes, and its own: some network plugins look at packets before a Service's
// address is replaced, and some after.
func apiServers(ctx context.Context, reader client.Reader) ([]string, error) {
	var slice discoveryv1.EndpointSlice
	var service corev1.Service
	if err := errors.Join(reader.Get(ctx, apiServerKey, &slice), reader.Get(ctx, apiServerKey, &service)); err != nil {
		return nil, fmt.Errorf("finding the host's API servers: %w", err)
	}
	var found []netip.AddrPort
	add := func(address string, port int32) error {
		parsed, err := netip.ParseAddr(address)
		found = append(found, netip.AddrPortFrom(parsed, uint16(port))) //nolint:gosec // Kubernetes keeps ports in range.
		return err
	}
	var errs []error
	for _, endpoint := range slice.Endpoints {
		for _, address := range endpoint.Addresses {
			for _, port := range slice.Ports {
				errs = append(errs, add(address, *port.Port))
			}
		}
	}
	if len(found) == 0 {
		errs = append(errs, errors.New("no API server of the host is listed"))
	}
	for _, address := range service.Spec.ClusterIPs {
		for _, port := range service.Spec.Ports {
			errs = append(errs, add(address, port.Port))
		}
	}
	return sorted(found), errors.Join(errs...)
}

func sorted(found []netip.AddrPort) []string {
	slices.SortFunc(found, netip.AddrPort.Compare)
	var texts []string
	for _, one := range slices.Compact(found) {
		texts = append(texts, one.String())
	}
	return texts
}

func resolver(ctx context.Context, reader client.Reader) (string, error) {
	var service corev1.Service
	if err := reader.Get(ctx, client.ObjectKey{Namespace: names.CoreNamespace, Name: names.ResolverService}, &service); err != nil {
		return "", fmt.Errorf("finding the resolver of CloudSpaces: %w", err)
	}
	if _, err := netip.ParseAddr(service.Spec.ClusterIP); err != nil {
		return "", fmt.Errorf("the resolver of CloudSpaces has no address: %w", err)
	}
	return service.Spec.ClusterIP, nil
}

// Watch looks whether there are API servers that were not found, or another resolver. Then it ends with ErrChanged, and with it the
// operator, which starts anew and finds what is there now. An API server that is not there any more changes nothing: most come back.
type Watch struct {
	Reader client.Reader
	// Given is the network as it is configured, Found with what was found at the start.
	Given, Found configv1alpha1.Network
	// Every is how often it looks.
	Every time.Duration
}

// Start looks until the context ends.
func (w Watch) Start(ctx context.Context) error {
	ticker := time.NewTicker(w.Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := w.look(ctx); err != nil {
				return err
			}
		}
	}
}

// look takes an answer that does not come for no change.
func (w Watch) look(ctx context.Context) error {
	now, err := Complete(ctx, w.Reader, w.Given)
	switch {
	case err != nil:
		logr.FromContextOrDiscard(ctx).Info("The network of the host cluster cannot be looked at", "error", err.Error())
		return nil
	case slices.ContainsFunc(now.APIServers, func(server string) bool { return !slices.Contains(w.Found.APIServers, server) }):
		return fmt.Errorf("%w: its API servers are %v, they were %v", ErrChanged, now.APIServers, w.Found.APIServers)
	case now.Resolver != w.Found.Resolver:
		return fmt.Errorf("%w: the resolver of CloudSpaces is %s, it was %s", ErrChanged, now.Resolver, w.Found.Resolver)
	}
	return nil
}

// NeedLeaderElection tells that every instance looks: one that waits to take over must know too.
func (Watch) NeedLeaderElection() bool { return false }
