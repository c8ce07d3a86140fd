// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"

	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/clone"
)

const (
	containerdConfig = "containerd.toml"
	kubeletConfig    = "kubelet.yaml"
	proxyConfig      = "kube-proxy.yaml"
	resolverConfig   = "resolv.conf"
	networkConfig    = "10-bridge.conflist"

	// maxPods bounds the pods of the node: its pod range has 254 addresses.
	maxPods = 250
	// PauseImage is what every pod's sandbox runs.
	PauseImage = "registry.k8s.io/pause:3.10"
)

//go:embed templates
var templates embed.FS

// Files returns the contents of every configuration file by its path.
func Files(names clone.Names) (map[string][]byte, error) {
	containerd, err := render(containerdConfig)
	if err != nil {
		return nil, err
	}
	network, err := render(networkConfig)
	if err != nil {
		return nil, err
	}
	kubelet, err := yaml.Marshal(kubeletConfiguration(names))
	if err != nil {
		return nil, fmt.Errorf("encode kubelet configuration: %w", err)
	}
	proxy, err := yaml.Marshal(proxyConfiguration(names))
	if err != nil {
		return nil, fmt.Errorf("encode kube-proxy configuration: %w", err)
	}
	return map[string][]byte{
		config(containerdConfig):        containerd,
		config(kubeletConfig):           kubelet,
		config(proxyConfig):             proxy,
		config(resolverConfig):          []byte("nameserver " + DNSAddress + "\n"),
		cniFolder + "/" + networkConfig: network,
	}, nil
}

func render(name string) ([]byte, error) {
	parsed, err := template.ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, fmt.Errorf("read template of %s: %w", name, err)
	}
	var out bytes.Buffer
	err = parsed.Execute(&out, map[string]string{
		"Root":         State + "/containerd",
		"Socket":       ContainerdSocket,
		"PauseImage":   PauseImage,
		"NetworkFiles": cniFolder,
		"Plugins":      pluginFolder,
		"PodRange":     nodePodRange,
	})
	if err != nil {
		return nil, fmt.Errorf("fill in template of %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// kubeletConfiguration leaves disk and image limits wide: images are imported once and can never be pulled again, so nothing
// may collect them.
func kubeletConfiguration(names clone.Names) map[string]any {
	return map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               names.CgroupRoot,
		"clusterDNS":               []string{DNSAddress},
		"clusterDomain":            "cluster.local",
		"resolvConf":               config(resolverConfig),
		"containerRuntimeEndpoint": "unix://" + ContainerdSocket,
		"podLogsDir":               Logs + "/pods",
		"tlsCertFile":              pki("kubelet.crt"),
		"tlsPrivateKeyFile":        pki("kubelet.key"),
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true},
			"x509":      map[string]any{"clientCAFile": pki("ca.crt")},
		},
		"authorization":               map[string]any{"mode": "Webhook"},
		"maxPods":                     maxPods,
		"serializeImagePulls":         false,
		"imageGCHighThresholdPercent": 100,
		"evictionHard": map[string]string{
			"nodefs.available":  "1%",
			"imagefs.available": "1%",
			"memory.available":  "100Mi",
		},
	}
}

// proxyConfiguration leaves the machine's connection tracking limits alone: they are not this cluster's to set. It writes its
// rules anew every few seconds: kube-router replaces the whole filter table with one it read a moment before, and what
// kube-proxy wrote in between is lost until it writes again.
func proxyConfiguration(names clone.Names) map[string]any {
	return map[string]any{
		"apiVersion":       "kubeproxy.config.k8s.io/v1alpha1",
		"kind":             "KubeProxyConfiguration",
		"clientConnection": map[string]any{"kubeconfig": pki("kube-proxy.kubeconfig")},
		"hostnameOverride": names.Node,
		"mode":             "iptables",
		"clusterCIDR":      PodRange,
		"iptables":         map[string]any{"minSyncPeriod": "250ms", "syncPeriod": "5s"},
		"conntrack": map[string]any{
			"maxPerCore":            0,
			"min":                   0,
			"tcpEstablishedTimeout": "0s",
			"tcpCloseWaitTimeout":   "0s",
		},
	}
}
