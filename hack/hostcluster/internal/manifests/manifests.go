// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests holds what runs in a host cluster from its start: DNS, a storage class and Flux.
package manifests

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/template"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/toolchain"
)

// FluxNamespace is where Flux's controllers run.
const FluxNamespace = "flux-system"

// dnsNamespace is where CoreDNS runs.
const dnsNamespace = "kube-system"

//go:embed objects
var objects embed.FS

// controller is one of Flux's controllers.
type controller struct {
	Name, Image, ReadyPath, ReadyPort string
	Args                              []string
}

// controllers of Flux. Source controller is ready only when its file server is.
func controllers() []controller {
	return []controller{
		{
			Name: "source-controller", Image: toolchain.SourceControllerImage, ReadyPath: "/", ReadyPort: "http",
			Args: []string{
				"--storage-path=/data",
				"--storage-adv-addr=source-controller.$(RUNTIME_NAMESPACE).svc.cluster.local.",
			},
		},
		{Name: "helm-controller", Image: toolchain.HelmControllerImage, ReadyPath: "/readyz", ReadyPort: "healthz"},
		{Name: "kustomize-controller", Image: toolchain.KustomizeControllerImage, ReadyPath: "/readyz", ReadyPort: "healthz"},
	}
}

// Definitions reads Flux's custom resource definitions from folder.
func Definitions(folder string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("list custom resource definitions: %w", err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read custom resource definition: %w", err)
		}
		decoded, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		all = append(all, decoded...)
	}
	return all, nil
}

// Objects returns everything else, in the order of its making.
func Objects() ([]*unstructured.Unstructured, error) {
	values := map[string]string{
		"RegistryHost": node.RegistryHost,
		"NodeAddress":  node.Address,
		"DNSAddress":   node.DNSAddress,
		"CoreDNSImage": toolchain.CoreDNSImage,
	}
	var all []*unstructured.Unstructured
	for _, name := range []string{"storage.yaml", "coredns.yaml", "flux.yaml"} {
		decoded, err := render(name, values)
		if err != nil {
			return nil, err
		}
		all = append(all, decoded...)
	}
	for _, controller := range controllers() {
		decoded, err := render("flux-controller.yaml", controller)
		if err != nil {
			return nil, err
		}
		all = append(all, decoded...)
	}
	return all, nil
}

func render(name string, values any) ([]*unstructured.Unstructured, error) {
	parsed, err := template.ParseFS(objects, "objects/"+name)
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", name, err)
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, values); err != nil {
		return nil, fmt.Errorf("fill in manifest %s: %w", name, err)
	}
	decoded, err := decode(text.Bytes())
	if err != nil {
		return nil, fmt.Errorf("read manifest %s: %w", name, err)
	}
	return decoded, nil
}

func decode(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var all []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			all = append(all, object)
		}
	}
}
