// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forwarder leads connections from one loopback port of the machine to what lives in the cluster's own network
// namespace: the API server, the Services of vClusters, and the chart registry.
package forwarder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/inetaf/tcpproxy"
)

// address stands for the one listener: tcpproxy keeps routes by address, and the listener is handed in already open.
const address = "127.0.0.1:0"

// Backends says where connections end.
type Backends struct {
	// APIServer is the address for TLS without a server name, or with one that names no Service.
	APIServer string
	// Registry is the address for everything that is plain HTTP.
	Registry string
	// Service finds the address of a Service by namespace and name, or an error if there is none.
	Service func(ctx context.Context, namespace, name string) (string, error)
	// Passed finds the Service to which an Ingress passes TLS of any other server name, if one does.
	Passed func(ctx context.Context, serverName string) (namespace, name string, ok bool)
}

// Serve routes the connections of listener until ctx ends. A Service is addressed by the TLS server name
// NAME.NAMESPACE.svc, as in the kubeconfigs that vClusters write, or by the host of an Ingress, as an ingress controller would.
func Serve(ctx context.Context, listener net.Listener, to Backends) error {
	proxy := tcpproxy.Proxy{ListenFunc: func(string, string) (net.Listener, error) { return listener, nil }}
	proxy.AddSNIRouteFunc(address, to.route)
	proxy.AddHTTPHostMatchRoute(address, anyHost, tcpproxy.To(to.Registry))
	proxy.AddRoute(address, tcpproxy.To(to.APIServer))
	if err := proxy.Start(); err != nil {
		return fmt.Errorf("start forwarder: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = proxy.Close() })
	defer stop()
	if err := proxy.Wait(); err != nil && ctx.Err() == nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("forward connections: %w", err)
	}
	return nil
}

// anyHost takes every HTTP request: TLS has been routed before it.
func anyHost(_ context.Context, host string) bool { return host != "" }

// route finds the target of a TLS server name. A Service that is gone closes the connection: leading it to the API server
// instead would show the wrong certificate and hide what is wrong.
func (b Backends) route(ctx context.Context, serverName string) (tcpproxy.Target, bool) {
	namespace, name, ok := ParseServiceName(serverName)
	if !ok {
		namespace, name, ok = b.Passed(ctx, serverName)
	}
	if !ok {
		return nil, false
	}
	found, err := b.Service(ctx, namespace, name)
	if err != nil {
		slog.Warn("no such service to forward to", "serverName", serverName, "error", err)
		return closing{}, true
	}
	return tcpproxy.To(found), true
}

// closing is the target that ends a connection.
type closing struct{}

// HandleConn closes conn.
func (closing) HandleConn(conn net.Conn) { _ = conn.Close() }

// ParseServiceName splits NAME.NAMESPACE.svc, with or without the cluster's domain behind it. kubernetes.default.svc is the
// API server's own name and is no Service in this sense.
func ParseServiceName(serverName string) (namespace, name string, ok bool) {
	short := strings.TrimSuffix(strings.TrimSuffix(serverName, "."), ".cluster.local")
	parts := strings.Split(short, ".")
	if len(parts) != 3 || parts[2] != "svc" || parts[0] == "" || parts[1] == "" {
		return "", "", false
	}
	if parts[0] == "kubernetes" && parts[1] == "default" {
		return "", "", false
	}
	return parts[1], parts[0], true
}
