//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
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
type host struct{ cluster }

func connect(t *testing.T) *host {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" || os.Getenv("HOSTCLUSTER") == "" {
		t.Fatal("KUBECONFIG and HOSTCLUSTER are not set: run make test-e2e")
	}
	return &host{cluster: open(t, path)}
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
	hostcluster(t.Context(), t, "kubeconfig", hostName, "-o", file)
	return open(t, file)
}

// hostcluster runs one of the local host cluster's own commands.
func hostcluster(ctx context.Context, t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(ctx, os.Getenv("HOSTCLUSTER"), args...).CombinedOutput()
	NewWithT(t).Expect(err).NotTo(HaveOccurred(), string(out))
}

// asOperator is an administrator who takes the operator's name, for what nobody else may change.
func (h *host) asOperator(t *testing.T) client.WithWatch {
	t.Helper()
	return h.as(t, rest.ImpersonationConfig{UserName: "system:serviceaccount:kubeopera-system:tenant-controller", Groups: []string{"system:masters"}})
}

func (h *host) as(t *testing.T, somebody rest.ImpersonationConfig) client.WithWatch {
	t.Helper()
	config := rest.CopyConfig(h.config)
	config.Impersonate = somebody
	c, err := client.NewWithWatch(config, client.Options{Scheme: h.Scheme()})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return c
}

func fromFile[T runtime.Object](t *testing.T, path string, into T) T {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(yaml.UnmarshalStrict(text, into)).To(Succeed())
	return into
}

// removeTenants takes Tenants down and waits until they are gone. What is not there is gone already.
func (h *host) removeTenants(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		h.deleteTenant(t, id)
	}
	for _, id := range ids {
		h.waitUntilGone(t, id)
	}
}

func (h *host) deleteTenant(t *testing.T, id string) {
	t.Helper()
	err := h.Delete(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}})
	NewWithT(t).Expect(client.IgnoreNotFound(err)).To(Succeed())
}

func (h *host) waitUntilGone(t *testing.T, id string) {
	t.Helper()
	NewWithT(t).Eventually(func() bool {
		return apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKey{Name: id}, &v1alpha1.Tenant{}))
	}, removal, interval).Should(BeTrue(), "Tenant %s is still there", id)
}

func (h *host) createTenant(t *testing.T, id string) {
	t.Helper()
	NewWithT(t).Expect(h.Create(t.Context(), &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}})).To(Succeed())
}

// cloudSpace reads one that must be there.
func (h *host) cloudSpace(ctx context.Context, g Gomega, id, name string) *v1alpha1.CloudSpace {
	var cloudSpace v1alpha1.CloudSpace
	g.Expect(h.Get(ctx, client.ObjectKey{Namespace: "tenant-" + id, Name: name}, &cloudSpace)).To(Succeed())
	return &cloudSpace
}

// follow begins something and looks at each event that a watch then tells of, until one is enough.
func (h *host) follow(t *testing.T, list client.ObjectList, begin func(), enough func(watch.Event) bool, options ...client.ListOption) {
	t.Helper()
	events, err := h.Watch(t.Context(), list, options...)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	begin()
	timeout := time.After(provisioning)
	for {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				t.Fatal("the watch has ended")
			}
			if enough(event) {
				return
			}
		case <-timeout:
			t.Fatal("what was waited for did not come in time")
		}
	}
}

// named selects one object of a watch.
func named(name string) client.ListOption {
	return client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector(metav1.ObjectNameField, name)}
}

// killPods deletes pods as if their node had lost them: at once, without asking them to end.
func (h *host) killPods(t *testing.T, options ...client.DeleteAllOfOption) {
	t.Helper()
	options = append(options, client.GracePeriodSeconds(0))
	NewWithT(t).Expect(h.DeleteAllOf(t.Context(), &corev1.Pod{}, options...)).To(Succeed())
}

// scale sets the replicas of a Deployment or StatefulSet.
func (h *host) scale(ctx context.Context, t *testing.T, workload client.Object, replicas int) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	NewWithT(t).Expect(h.Patch(ctx, workload, patch)).To(Succeed())
}
