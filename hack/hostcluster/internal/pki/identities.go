// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/x509"
	"net"
)

// Site is what certificates must name.
type Site struct {
	// Node is the node's name.
	Node string
	// NodeAddress is the node's address inside the cluster's network namespace.
	NodeAddress net.IP
	// ServiceAddress is the first address of the service range, the API server's Service.
	ServiceAddress net.IP
	// AuthService is the address of the OpenID provider's Service, AuthServiceHost its name.
	AuthService     net.IP
	AuthServiceHost string
}

const (
	masters = "system:masters"
	nodes   = "system:nodes"
)

// Clients that have a kubeconfig of their own, named as its file.
const (
	Admin             = "admin"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Proxy             = "kube-proxy"
	Router            = "kube-router"
	Kubelet           = "kubelet"
)

// clients are those that speak to the API server with a kubeconfig. The names and groups are those that Kubernetes' built-in
// roles are bound to; kube-router, which has none, runs on the node as the administrator.
func (s Site) clients() map[string]subject {
	return map[string]subject{
		Admin:             client("hostcluster-admin", masters),
		ControllerManager: client("system:kube-controller-manager"),
		Scheduler:         client("system:kube-scheduler"),
		Proxy:             client("system:kube-proxy"),
		Router:            client("kube-router", masters),
		Kubelet:           client("system:node:"+s.Node, nodes),
	}
}

// servers are the certificates and keys that daemons take as files, apart from kubeconfigs.
func (s Site) servers() map[string]subject {
	return map[string]subject{
		"apiserver": {
			name: "kube-apiserver",
			hosts: []string{
				"localhost", s.Node, "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc.cluster.local",
			},
			addresses: []net.IP{net.IPv4(127, 0, 0, 1), s.NodeAddress, s.ServiceAddress},
			usage:     x509.ExtKeyUsageServerAuth,
		},
		// For a pod: whoever deploys the OpenID provider brings it there.
		"auth-service": {
			name:      "auth-service",
			hosts:     []string{s.AuthServiceHost},
			addresses: []net.IP{s.AuthService},
			usage:     x509.ExtKeyUsageServerAuth,
		},
		"apiserver-kubelet-client": client("kube-apiserver-kubelet-client", masters),
		"kubelet": {
			name:      "system:node:" + s.Node,
			groups:    []string{nodes},
			hosts:     []string{s.Node},
			addresses: []net.IP{s.NodeAddress},
			usage:     x509.ExtKeyUsageServerAuth,
		},
	}
}

func client(name string, groups ...string) subject {
	return subject{name: name, groups: groups, usage: x509.ExtKeyUsageClientAuth}
}
