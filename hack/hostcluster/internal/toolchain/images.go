// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"path/filepath"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/archive"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

// ProbeImage is a small image for tests: a shell and the probe program.
const ProbeImage = node.RegistryHost + "/probe:1"

// Images that manifests name. Those of vCluster are what its chart and its syncer ask for, whatever version was built.
const (
	CoreDNSImage             = "docker.io/coredns/coredns:1.14.2"
	HelmControllerImage      = "ghcr.io/fluxcd/helm-controller:" + HelmController
	SourceControllerImage    = "ghcr.io/fluxcd/source-controller:" + SourceController
	KustomizeControllerImage = "ghcr.io/fluxcd/kustomize-controller:" + KustomizeController
)

// Busybox is the static shell of the machine that images with a shell get.
const Busybox = "/bin/busybox"

const (
	authorities    = "/etc/ssl/certs/ca-certificates.crt"
	nobody         = "65534:65534"
	kubernetesPath = "/kubernetes/"
)

// images describes every image of the cluster; bin is the folder of the built binaries. The first ones are needed before
// any pod runs.
func images(bin string) []archive.Image {
	built := func(name, target string) archive.File {
		return archive.File{Source: filepath.Join(bin, name), Target: target}
	}
	shell := archive.Shell(Busybox)
	certificates := archive.File{Source: authorities, Target: authorities}
	return []archive.Image{
		{Ref: node.PauseImage, Entrypoint: []string{"/pause"}, User: nobody, Files: []archive.File{built("pause", "/pause")}},
		{Ref: CoreDNSImage, Entrypoint: []string{"/coredns"}, Files: []archive.File{built("coredns", "/coredns"), certificates}},
		controller(bin, "source-controller", SourceControllerImage),
		controller(bin, "helm-controller", HelmControllerImage),
		controller(bin, "kustomize-controller", KustomizeControllerImage),
		{Ref: "ghcr.io/loft-sh/kubernetes:v1.36.0", Files: append(kubernetesFiles(bin), shell...)},
		{
			Ref: "ghcr.io/loft-sh/vcluster-oss:" + bare(VCluster), Entrypoint: []string{"/vcluster", "start"},
			Files: append([]archive.File{built("vcluster", "/vcluster"), certificates}, shell...),
		},
		{Ref: "registry.k8s.io/etcd:3.6.8-0", Files: append([]archive.File{built("etcd", "/usr/local/bin/etcd")}, shell...)},
		{Ref: "mirror.gcr.io/library/alpine:3.20", Command: []string{"/bin/sh"}, Files: shell},
		{
			Ref: ProbeImage, Command: []string{"probe", "serve"}, User: nobody,
			Files: append([]archive.File{built("probe", "/usr/local/bin/probe"), certificates}, shell...),
		},
	}
}

func controller(bin, name, ref string) archive.Image {
	return archive.Image{
		Ref:        ref,
		Entrypoint: []string{"/usr/local/bin/" + name},
		User:       nobody,
		Files: []archive.File{
			{Source: filepath.Join(bin, name), Target: "/usr/local/bin/" + name},
			{Source: authorities, Target: authorities},
		},
	}
}

// kubernetesFiles is what vCluster's init container copies out: the control plane commands, in one binary. Scripts call it
// rather than links, because copying a link over one that is there fails, as when the init container runs again.
func kubernetesFiles(bin string) []archive.File {
	files := []archive.File{{Source: filepath.Join(bin, kubeBinary), Target: kubernetesPath + kubeBinary}}
	for _, command := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		script := "#!/bin/sh\nexec \"${0%/*}/" + kubeBinary + "\" " + command + " \"$@\"\n"
		files = append(files, archive.File{Script: script, Target: kubernetesPath + command})
	}
	return files
}
