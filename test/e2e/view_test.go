//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// back is how long what waited for the view may take once it answers again.
const back = 60 * time.Second

// viewOfTheirOwn: an Owner makes a CloudSpace with kubectl, and Flux makes another as a ServiceAccount of the tenant; a Viewer looks on; who is
// of another tenant sees nothing of either, at any moment.
func (h *host) viewOfTheirOwn(t *testing.T, judy, kim *person) {
	t.Helper()
	g := NewWithT(t)
	h.addMembers(t, "judy-default",
		v1alpha1.Member{Kind: v1alpha1.MemberUser, Name: "kubeopera:vera", Role: v1alpha1.MemberViewer},
		v1alpha1.Member{Kind: v1alpha1.MemberServiceAccount, Name: "gitops", Namespace: "tenant-judy-default", Role: v1alpha1.MemberOwner})
	vera := addUser(t, os.Getenv("KUBECONFIG"), "vera")
	h.signIn(t, vera)
	t.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), plugin(), "user", "remove", "vera").Run()
	})
	seenByKim := kim.watches(t)
	applied := h.appliedByFlux(t)

	staging := filepath.Join(t.TempDir(), "staging.yaml")
	g.Expect(os.WriteFile(staging, []byte("{apiVersion: view.kubeopera.io/v1alpha1, kind: CloudSpace, metadata: {name: staging, namespace: tenant-judy-default}}"), 0o600)).To(Succeed())
	can := func(p *person, args ...string) string {
		out, err := p.kubectl(t, args...)
		g.Expect(err).NotTo(HaveOccurred(), out)
		return out
	}
	cannot := func(p *person, words string, args ...string) {
		out, err := p.kubectl(t, args...)
		g.Expect(err).To(HaveOccurred(), out)
		g.Expect(out).To(ContainSubstring(words))
	}
	g.Eventually(func() (string, error) { return vera.kubectl(t, "get", "cloudspaces", "-A") }, short, interval).Should(ContainSubstring("default"))
	cannot(vera, "Forbidden", "apply", "-f", staging)
	can(judy, "apply", "-f", staging)
	can(judy, "apply", "--server-side", "--field-manager=judy", "-f", staging)
	out, err := judy.kubectl(t, "diff", "-f", staging)
	g.Expect(err).NotTo(HaveOccurred(), "nothing is to be changed: %s", out)
	can(judy, "wait", "-n", "tenant-judy-default", "cloudspace/staging", "--for=jsonpath={.status.state}=active", "--timeout=5m")
	g.Expect(can(judy, "get", "cloudspaces", "-A", "--field-selector", "status.state=active")).To(ContainSubstring("staging"))
	g.Expect(can(judy, "describe", "cloudspace", "staging", "-n", "tenant-judy-default")).To(ContainSubstring("the CloudSpace is ready for use"), "its events")
	g.Expect(can(judy, "describe", "cloudspace", "staging", "-n", "tenant-judy-default")).NotTo(Or(ContainSubstring("kubeopera-system"), ContainSubstring("Host")))
	g.Expect(can(judy, "get", "accounts", "judy-default", "-o", "jsonpath={.status.quota.reserved.cloudspaces}")).NotTo(BeEmpty())
	g.Expect(can(judy, "explain", "cloudspaces.spec.suspend")).To(ContainSubstring("takes control plane and workloads down"))
	cannot(kim, "not found", "get", "cloudspace", "staging", "-n", "tenant-judy-default")
	cannot(vera, "Forbidden", "delete", "cloudspace", "staging", "-n", "tenant-judy-default")
	g.Eventually(applied, provisioning, interval).Should(BeTrue(), "Flux shows what it applied as healthy")
	can(judy, "delete", "cloudspace", "staging", "-n", "tenant-judy-default", "--timeout=5m")
	g.Expect(seenByKim()).To(And(ContainSubstring("tenant-kim-default"), Not(ContainSubstring("judy")), Not(ContainSubstring("staging"))))
}

func (h *host) addMembers(t *testing.T, id string, members ...v1alpha1.Member) {
	t.Helper()
	g := NewWithT(t)
	var tenant v1alpha1.Tenant
	g.Expect(h.Get(t.Context(), client.ObjectKey{Name: id}, &tenant)).To(Succeed())
	before := tenant.DeepCopy()
	tenant.Spec.Members = append(tenant.Spec.Members, members...)
	g.Expect(h.Patch(t.Context(), &tenant, client.MergeFrom(before))).To(Succeed())
}

// watches follows all that somebody sees. The function ends that, and gives it.
func (p *person) watches(t *testing.T) func() string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var out bytes.Buffer
	command := exec.CommandContext(ctx, "kubectl", "get", "cloudspaces", "-A", "--watch", "--output-watch-events")
	command.Env, command.Stdout, command.Stderr = append(os.Environ(), "KUBECONFIG="+p.kubeconfig), &out, &out
	NewWithT(t).Expect(command.Start()).To(Succeed())
	t.Cleanup(stop)
	return func() string {
		stop()
		_ = command.Wait()
		return out.String()
	}
}

// appliedByFlux has Flux apply a CloudSpace of the view as a ServiceAccount of the tenant. The function tells whether Flux calls it healthy.
func (h *host) appliedByFlux(t *testing.T) func(Gomega) bool {
	t.Helper()
	g := NewWithT(t)
	pushManifests(t, "manifests/team", "1", "testdata/team")
	source := &sourcev1.OCIRepository{
		ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: "tenant-judy-default"},
		Spec: sourcev1.OCIRepositorySpec{
			URL: "oci://" + registry + "/manifests/team", Insecure: true, Reference: &sourcev1.OCIRepositoryRef{Tag: "1"}, Interval: metav1.Duration{Duration: time.Hour},
		},
	}
	team := &kustomizev1.Kustomization{
		ObjectMeta: metav1.ObjectMeta{Name: "team", Namespace: source.Namespace},
		Spec: kustomizev1.KustomizationSpec{
			SourceRef:          kustomizev1.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: source.Name},
			ServiceAccountName: "gitops",
			Interval:           metav1.Duration{Duration: time.Hour}, RetryInterval: &metav1.Duration{Duration: 5 * time.Second},
			Timeout: &metav1.Duration{Duration: provisioning}, Prune: true, Wait: true,
		},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "gitops", Namespace: source.Namespace}}
	for _, o := range []client.Object{account, source, team} {
		g.Expect(h.Create(t.Context(), o)).To(Succeed())
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = h.Delete(ctx, team)
		// It takes what it applied with it, and needs the ServiceAccount for that.
		g.Eventually(func() bool {
			return apierrors.IsNotFound(h.Get(ctx, client.ObjectKeyFromObject(team), &kustomizev1.Kustomization{}))
		}, removal, interval).Should(BeTrue())
		_ = h.Delete(ctx, source)
	})
	return func(g Gomega) bool {
		g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(team), team)).To(Succeed())
		return meta.IsStatusConditionTrue(team.Status.Conditions, "Ready")
	}
}

// viewStopped: without the view the operator goes on. What waits for it, by Kubernetes' own rule, says so, and ends soon after it is back.
func (h *host) viewStopped(t *testing.T) {
	g := NewWithT(t)
	server := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kubeopera-api", Namespace: "kubeopera-core"}}
	h.scale(t.Context(), t, server, 0)
	t.Cleanup(func() { h.scale(context.WithoutCancel(t.Context()), t, server, 2) })
	h.killPods(t, client.InNamespace(server.Namespace), client.MatchingLabels{"app.kubernetes.io/name": server.Name})

	unrelated := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "view-is-away"}}
	g.Expect(h.Create(t.Context(), unrelated)).To(Succeed())
	g.Expect(h.Delete(t.Context(), unrelated)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(unrelated), unrelated)).To(Succeed())
		var reasons []string
		for _, c := range unrelated.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				reasons = append(reasons, string(c.Type))
			}
		}
		g.Expect(reasons).To(ContainElement(string(corev1.NamespaceDeletionDiscoveryFailure)))
	}, short, interval).Should(Succeed())

	asked := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Name: "meanwhile", Namespace: "tenant-judy-default"}, Spec: v1alpha1.CloudSpaceSpec{Suspend: true}}
	g.Expect(h.Create(t.Context(), asked)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(h.Get(t.Context(), client.ObjectKeyFromObject(asked), asked)).To(Succeed())
		g.Expect(asked.Status.Phase).To(Equal(v1alpha1.CloudSpaceSuspended))
	}, short, interval).Should(Succeed(), "the operator does not need the view")

	h.scale(t.Context(), t, server, 2)
	g.Eventually(func() bool {
		return apierrors.IsNotFound(h.Get(t.Context(), client.ObjectKeyFromObject(unrelated), unrelated))
	}, back, interval).Should(BeTrue(), "the namespace goes soon after the view is back")
}
