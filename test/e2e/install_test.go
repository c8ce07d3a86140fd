//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/internal/supportbundle"
)

// everyWayInstalls asks the API server whether it would take what each way of installing sends. The platform is installed already,
// with kustomize.
func (h *host) everyWayInstalls(t *testing.T) {
	t.Run("one file", func(t *testing.T) {
		wouldBeTaken(t, run(t, nil, "cat", "../../dist/install.yaml"))
	})
	t.Run("Helm", func(t *testing.T) {
		wouldBeTaken(t, run(t, nil, "helm", "template", "cloud-runner", "../../charts/cloud-runner", "--namespace", "kubeopera-system"))
	})
}

func wouldBeTaken(t *testing.T, manifests []byte) {
	t.Helper()
	out := run(t, manifests, "kubectl", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-")
	if taken := strings.Count(string(out), "(server dry run)"); taken != bytes.Count(manifests, []byte("\nkind: ")) {
		t.Errorf("%d objects were taken:\n%s", taken, out)
	}
}

func run(t *testing.T, stdin []byte, name string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), stderr.String())
	return out
}

// supportBundle has the state of CloudSpaces in it, and nothing that opens one.
func (h *host) supportBundle(t *testing.T) {
	g := NewWithT(t)
	var bundle, progress bytes.Buffer
	g.Expect(supportbundle.Collect(t.Context(), h.config, &bundle, supportbundle.Options{Progress: &progress, Now: time.Now()})).To(Succeed())
	text := unpacked(t, &bundle)
	for _, want := range []string{"name: alice-default", "kind: HelmRelease", "namespace: vcluster-alice-default"} {
		g.Expect(text).To(ContainSubstring(want))
	}
	for _, secret := range h.credentials(t) {
		g.Expect(text).NotTo(ContainSubstring(secret))
	}
}

// credentials are what opens the CloudSpace of a tenant, as it is written in a kubeconfig.
func (h *host) credentials(t *testing.T) []string {
	t.Helper()
	g := NewWithT(t)
	stored := &corev1.Secret{}
	g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kubeopera-system", Name: "tenant-alice-default-kubeconfig"}, stored)).To(Succeed())
	config, err := clientcmd.Load(stored.Data["config"])
	g.Expect(err).NotTo(HaveOccurred())
	var parts []string
	for _, user := range config.AuthInfos {
		for _, each := range []string{user.Token, user.Password} {
			if each != "" {
				parts = append(parts, each)
			}
		}
		for line := range strings.SplitSeq(string(user.ClientKeyData), "\n") {
			if len(line) > 20 && !strings.HasPrefix(line, "--") {
				parts = append(parts, line)
			}
		}
	}
	g.Expect(parts).NotTo(BeEmpty())
	return parts
}

// unpacked is all text of a bundle.
func unpacked(t *testing.T, bundle io.Reader) string {
	t.Helper()
	g := NewWithT(t)
	unzipped, err := gzip.NewReader(bundle)
	g.Expect(err).NotTo(HaveOccurred())
	var text strings.Builder
	for reader := tar.NewReader(unzipped); ; {
		_, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return text.String()
		}
		g.Expect(err).NotTo(HaveOccurred())
		_, err = io.Copy(&text, io.LimitReader(reader, 64<<20))
		g.Expect(err).NotTo(HaveOccurred())
	}
}
