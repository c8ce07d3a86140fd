//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/controllers"
)

const (
	// provisioning bounds how long a CloudSpace may take on a machine of two cores that starts several at once.
	provisioning = 6 * time.Minute
	removal      = 4 * time.Minute
	short        = 60 * time.Second
	interval     = 250 * time.Millisecond

	probeImage = "registry.hostcluster.internal/probe:1"
)

// cluster is an API server with the clients that tests need: the host cluster, or a CloudSpace.
type cluster struct {
	client.WithWatch
	kubernetes.Interface
	config *rest.Config
}

// host is the host cluster.
type host struct {
	cluster
	t *testing.T
}

func connect(t *testing.T) *host {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" || os.Getenv("HOSTCLUSTER") == "" {
		t.Fatal("KUBECONFIG and HOSTCLUSTER are not set: run make test-e2e")
	}
	return &host{cluster: open(t, path), t: t}
}

func open(t *testing.T, kubeconfig string) cluster {
	t.Helper()
	g := NewWithT(t)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	g.Expect(err).NotTo(HaveOccurred())
	config.QPS, config.Burst = 100, 200
	scheme := controllers.Scheme()
	g.Expect(kustomizev1.AddToScheme(scheme)).To(Succeed())
	withWatch, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	typed, err := kubernetes.NewForConfig(config)
	g.Expect(err).NotTo(HaveOccurred())
	return cluster{WithWatch: withWatch, Interface: typed, config: config}
}

// openCloudSpace reaches a CloudSpace from outside, as a customer does, with the kubeconfig that the platform stored.
func openCloudSpace(t *testing.T, hostName string) cluster {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	out, err := exec.CommandContext(t.Context(), os.Getenv("HOSTCLUSTER"), "kubeconfig", hostName, "-o", file).CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(out))
	return open(t, file)
}

func fromFile[T runtime.Object](t *testing.T, path string, into T) T {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.UnmarshalStrict(text, into)).To(Succeed())
	return into
}

// removeTenants clears what an earlier run, or make demo, left.
func (h *host) removeTenants(ids ...string) {
	h.t.Helper()
	g := NewWithT(h.t)
	for _, id := range ids {
		err := h.Delete(context.Background(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}})
		g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	}
	for _, id := range ids {
		g.Eventually(func() bool {
			return apierrors.IsNotFound(h.Get(context.Background(), client.ObjectKey{Name: id}, &v1alpha1.Tenant{}))
		}, removal, interval).Should(BeTrue(), "Tenant %s is still there", id)
	}
}
