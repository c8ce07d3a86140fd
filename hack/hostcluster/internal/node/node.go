// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node says how the one node of a host cluster is made up: its addresses, its folders, and every daemon with its
// flags and configuration files. Paths are those inside the cluster's own mount namespace, the same for every clone.
package node

import (
	"net"
	"path"
)

// Addresses and ranges inside the cluster's network namespace. They meet nothing outside of it, so that every clone can use
// the same ones.
const (
	Address        = "192.168.255.2"
	PeerAddress    = "192.168.255.1"
	AddressBits    = 30
	Interface      = "node0"
	PeerInterface  = "node1"
	ServiceRange   = "10.96.0.0/16"
	ServiceAddress = "10.96.0.1"
	DNSAddress     = "10.96.0.10"
	// AuthService is the address of the Service of the platform's OpenID provider, which the API server reaches without DNS, and
	// AuthServiceHost the name by which the machine does, through the cluster's port.
	AuthService     = "10.96.0.20"
	AuthServiceHost = "auth-service.kubeopera-core.svc"
	PodRange        = "10.244.0.0/16"
	nodePodRange    = "10.244.0.0/24"
	// APIServer is where daemons reach the API server.
	APIServer = Address + ":6443"
	// Registry is where pods and Flux reach the chart registry, and RegistryName the name that the cluster's DNS gives it.
	Registry     = Address + ":5000"
	RegistryHost = "registry.hostcluster.internal"
	RegistryName = RegistryHost + ":5000"
	// EtcdClient is where etcd serves, and EtcdHealth answers 200 once it does.
	EtcdClient   = "http://127.0.0.1:2379"
	EtcdHealth   = EtcdClient + "/health"
	etcdPeer     = "http://127.0.0.1:2380"
	routerHealth = "20244"
)

// Folders inside the mount namespace. /run is a file system of its own there.
const (
	Base = "/run/hostcluster"
	// State is the clone's state folder, Logs its logs, Cache the folder of binaries.
	State = Base + "/state"
	Logs  = Base + "/logs"
	Cache = Base + "/cache"
	// Authentication tells the API server who a token is. It follows changes of the file while it runs.
	Authentication = State + "/authentication.yaml"
	// ContainerdSocket is the address of containerd.
	ContainerdSocket = "/run/containerd/containerd.sock"
	// HostPathVolumes is where the controller manager's provisioner makes volumes; the path is fixed in its code.
	HostPathVolumes = "/tmp/hostpath_pv"

	pkiFolder    = State + "/pki"
	configFolder = Base + "/config"
	cniFolder    = Base + "/cni"
	pluginFolder = "/usr/lib/cni"
)

// Bin is the path of one of the cached binaries.
func Bin(name string) string { return path.Join(Cache, "bin", name) }

// Path is the PATH of every daemon: containerd looks up its shim and runc on it, kubelet and kube-proxy iptables.
func Path() string { return path.Join(Cache, "bin") + ":/usr/sbin:/usr/bin:/sbin:/bin" }

// IP parses one of this package's addresses.
func IP(address string) net.IP { return net.ParseIP(address) }

func pki(file string) string { return path.Join(pkiFolder, file) }

func config(file string) string { return path.Join(configFolder, file) }
