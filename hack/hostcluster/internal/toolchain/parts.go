// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package toolchain builds everything that a host cluster runs, from Go modules, into a cache outside of the clone.
package toolchain

import "strings"

// Versions of what is built. They are those of tools/go.mod (a test compares), and of the images that charts and manifests
// name.
const (
	Kubernetes          = "v1.36.3"
	Etcd                = "v3.6.8"
	containerd          = "v2.3.7"
	VCluster            = "v0.36.1"
	CoreDNS             = "v1.14.7"
	HelmController      = "v1.6.3"
	SourceController    = "v1.9.6"
	KustomizeController = "v1.9.6"
)

const (
	ownMains           = "github.com/tantilium/cloud-runner/hack/hostcluster/tools/cmd/"
	containerdMains    = "github.com/containerd/containerd/v2/cmd/"
	vclusterModule     = "github.com/loft-sh/vcluster"
	helmModule         = "github.com/fluxcd/helm-controller"
	sourceModule       = "github.com/fluxcd/source-controller"
	kustomizeModule    = "github.com/fluxcd/kustomize-controller"
	kubeVersionPackage = "k8s.io/component-base/version"
)

// kubeBinary holds the six Kubernetes commands; kubeCommands are links to it.
const kubeBinary = "kube"

var kubeCommands = []string{
	"kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet",
}

// part is one binary: its name, its main package and the variables that the linker sets.
type part struct {
	Name, Package string
	Variables     map[string]string
}

// parts are in the order of their build: kube and etcd first, since tests of the API need no more than those.
func parts() []part {
	containerdVersion := map[string]string{"github.com/containerd/containerd/v2/version.Version": containerd}
	major, minor := majorMinor(Kubernetes)
	return []part{
		{Name: kubeBinary, Package: ownMains + "kube", Variables: map[string]string{
			kubeVersionPackage + ".gitVersion":   Kubernetes,
			kubeVersionPackage + ".gitMajor":     major,
			kubeVersionPackage + ".gitMinor":     minor,
			kubeVersionPackage + ".gitTreeState": "clean",
		}},
		{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"},
		{Name: "etcdctl", Package: "go.etcd.io/etcd/etcdctl/v3"},
		{Name: "etcdutl", Package: "go.etcd.io/etcd/etcdutl/v3"},
		{Name: "containerd", Package: containerdMains + "containerd", Variables: containerdVersion},
		{Name: "containerd-shim-runc-v2", Package: containerdMains + "containerd-shim-runc-v2", Variables: containerdVersion},
		{Name: "ctr", Package: containerdMains + "ctr", Variables: containerdVersion},
		{Name: "pause", Package: ownMains + "pause"},
		{Name: "probe", Package: ownMains + "probe"},
		{Name: "coredns", Package: ownMains + "coredns"},
		{Name: "kube-router", Package: ownMains + "kube-router"},
		{Name: "helm", Package: "helm.sh/helm/v4/cmd/helm"},
		{Name: "helm-controller", Package: helmModule},
		{Name: "source-controller", Package: sourceModule},
		{Name: "kustomize-controller", Package: kustomizeModule},
		{Name: "vcluster", Package: vclusterModule + "/cmd/vcluster", Variables: map[string]string{
			vclusterModule + "/pkg/telemetry.SyncerVersion": bare(VCluster),
		}},
	}
}

// bare is a version without its leading v, as image tags and charts write it.
func bare(version string) string { return strings.TrimPrefix(version, "v") }

func majorMinor(version string) (major, minor string) {
	fields := strings.SplitN(bare(version), ".", 3)
	return fields[0], fields[1]
}
