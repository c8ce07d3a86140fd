// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"path"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/clone"
)

// Names of the daemons, which are also those of their binaries and logs.
const (
	Etcd              = "etcd"
	Containerd        = "containerd"
	APIServerDaemon   = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelet           = "kubelet"
	Proxy             = "kube-proxy"
	Router            = "kube-router"
)

// Gate is a condition that a daemon waits for before its first start.
type Gate string

// The gates. NodeRegistered means that the Node object is there, with its address.
const (
	EtcdServes      Gate = "etcd serves"
	APIServerReady  Gate = "API server is ready"
	ContainerdReady Gate = "containerd answers"
	NodeRegistered  Gate = "node is registered"
)

// Daemon is one process that the supervisor keeps running.
type Daemon struct {
	Name string
	Args []string
	// After are the gates that must be open before the first start.
	After []Gate
}

// Options are what a person may choose about the daemons.
type Options struct {
	// Fsync makes etcd write durably, as production does. Without it a power cut may lose the cluster's data, which a local
	// cluster can bear; figures of latency need it on.
	Fsync bool
}

// Daemons returns every daemon of the cluster in the order of their start. They are stopped the other way round.
func Daemons(names clone.Names, options Options) []Daemon {
	return []Daemon{
		etcd(options),
		{Name: Containerd, Args: []string{"--config=" + config(containerdConfig)}},
		{Name: APIServerDaemon, Args: apiServerArgs(), After: []Gate{EtcdServes}},
		{Name: ControllerManager, Args: controllerManagerArgs(), After: []Gate{APIServerReady}},
		{Name: Scheduler, Args: schedulerArgs(), After: []Gate{APIServerReady}},
		{Name: Kubelet, Args: kubeletArgs(names), After: []Gate{APIServerReady, ContainerdReady}},
		{Name: Proxy, Args: []string{"--config=" + config(proxyConfig)}, After: []Gate{APIServerReady}},
		{Name: Router, Args: routerArgs(names), After: []Gate{NodeRegistered}},
	}
}

// EtcdFolder holds etcd's data, in the state folder.
const EtcdFolder = "etcd"

// EtcdMember are the flags that say which member etcd is of which cluster.
func EtcdMember() []string {
	return []string{"--name=default", "--initial-cluster=default=" + etcdPeer, "--initial-advertise-peer-urls=" + etcdPeer}
}

func etcd(options Options) Daemon {
	args := append([]string{
		"--data-dir=" + path.Join(State, EtcdFolder),
		"--listen-client-urls=" + EtcdClient,
		"--advertise-client-urls=" + EtcdClient,
		"--listen-peer-urls=" + etcdPeer,
		"--auto-compaction-mode=periodic",
		"--auto-compaction-retention=30m",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}, EtcdMember()...)
	if !options.Fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return Daemon{Name: Etcd, Args: args}
}

func apiServerArgs() []string {
	return []string{
		"--etcd-servers=" + EtcdClient,
		"--secure-port=6443",
		"--advertise-address=" + Address,
		"--service-cluster-ip-range=" + ServiceRange,
		"--authorization-mode=Node,RBAC",
		"--authentication-config=" + Authentication,
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--tls-cert-file=" + pki("apiserver.crt"),
		"--tls-private-key-file=" + pki("apiserver.key"),
		"--client-ca-file=" + pki("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + pki("service-account.key"),
		"--service-account-signing-key-file=" + pki("service-account.key"),
		"--kubelet-client-certificate=" + pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		// The aggregation layer, for API servers that run as pods.
		"--requestheader-client-ca-file=" + pki("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + pki("front-proxy.crt"),
		"--proxy-client-key-file=" + pki("front-proxy.key"),
		"--enable-aggregator-routing=true",
	}
}

func controllerManagerArgs() []string {
	return append(withKubeconfig(ControllerManager),
		"--service-account-private-key-file="+pki("service-account.key"),
		"--root-ca-file="+pki("ca.crt"),
		"--cluster-signing-cert-file="+pki("ca.crt"),
		"--cluster-signing-key-file="+pki("ca.key"),
		"--use-service-account-credentials=true",
		"--cluster-cidr="+PodRange,
		"--allocate-node-cidrs=true",
		"--enable-hostpath-provisioner=true",
	)
}

func schedulerArgs() []string { return withKubeconfig(Scheduler) }

// withKubeconfig are the flags of a control plane client that runs once and so needs no election.
func withKubeconfig(name string) []string {
	file := pki(name + ".kubeconfig")
	return []string{
		"--kubeconfig=" + file,
		"--authentication-kubeconfig=" + file,
		"--authorization-kubeconfig=" + file,
		"--leader-elect=false",
	}
}

func kubeletArgs(names clone.Names) []string {
	return []string{
		"--config=" + config(kubeletConfig),
		"--kubeconfig=" + pki("kubelet.kubeconfig"),
		"--root-dir=" + State + "/kubelet",
		"--hostname-override=" + names.Node,
		"--node-ip=" + Address,
	}
}

func routerArgs(names clone.Names) []string {
	return []string{
		"--kubeconfig=" + pki("kube-router.kubeconfig"),
		"--hostname-override=" + names.Node,
		"--service-cluster-ip-range=" + ServiceRange,
		"--health-port=" + routerHealth,
		// These do not run in our build of it; the health check must not wait for them.
		"--run-router=false",
		"--run-service-proxy=false",
		"--run-loadbalancer=false",
	}
}
