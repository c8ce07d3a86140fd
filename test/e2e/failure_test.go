//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// The version is offered, and its image does not exist.
const (
	brokenVersion = "v1.36.99"
	brokenImage   = "ghcr.io/loft-sh/kubernetes:" + brokenVersion
	workingImage  = "ghcr.io/loft-sh/kubernetes:v1.36.0"
)

// failure breaks a sign-up, sees that everybody is told why, mends it, and asks for a retry as the product's manual says.
func (h *host) failure(t *testing.T) {
	g := NewWithT(t)
	h.configure(t.Context(), t, func(config *configv1alpha1.PlatformConfig) {
		broken := config.Kubernetes[0]
		broken.Version = brokenVersion
		config.Kubernetes = append(config.Kubernetes, broken)
		config.Deadlines.ControlPlane.Duration = 30 * time.Second
	})
	t.Cleanup(func() {
		after := context.WithoutCancel(t.Context())
		h.onNode(after, t, "ctr", "-n", "k8s.io", "images", "rm", brokenImage)
		h.configure(after, t, func(*configv1alpha1.PlatformConfig) {})
	})

	g.Expect(h.Create(t.Context(), &v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: "alice-default"},
		Spec: v1alpha1.TenantSpec{DefaultCloudSpace: v1alpha1.DefaultCloudSpace{Template: v1alpha1.CloudSpaceTemplate{
			Spec: v1alpha1.CloudSpaceSpec{KubernetesVersion: brokenVersion},
		}}},
	})).To(Succeed())
	g.Eventually(func(g Gomega) {
		var tenant v1alpha1.Tenant
		g.Expect(h.Get(t.Context(), client.ObjectKey{Name: "alice-default"}, &tenant)).To(Succeed())
		g.Expect(tenant.Status.Phase).To(Equal(v1alpha1.TenantFailed))
		failedAndCounted(g, tenant.Status.Conditions, tenant.Status.Retry)
		var cloudSpace v1alpha1.CloudSpace
		g.Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "tenant-alice-default", Name: "default"}, &cloudSpace)).To(Succeed())
		g.Expect(cloudSpace.Status.Phase).To(Equal(v1alpha1.CloudSpaceFailed))
		failedAndCounted(g, cloudSpace.Status.Conditions, cloudSpace.Status.Retry)
	}, 2*time.Minute, interval).Should(Succeed())

	h.onNode(t.Context(), t, "ctr", "-n", "k8s.io", "images", "tag", workingImage, brokenImage)
	before := h.controlPlanePod(t)
	asTheManualSays := exec.CommandContext(t.Context(), "kubectl", "patch", "tenant", "alice-default", "--type", "merge",
		"-p", `{"status":{"phase":"Pending"}}`, "-n", "kubeopera-system")
	out, err := asTheManualSays.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Eventually(func(g Gomega) {
		g.Expect(h.controlPlanePod(t)).NotTo(Equal(before), "a new pod is tried at once, whatever the backoff of the old one")
	}, 20*time.Second, interval).Should(Succeed())
	h.waitForTenant(t, "alice-default")

	var tenant v1alpha1.Tenant
	g.Expect(h.Get(t.Context(), client.ObjectKey{Name: "alice-default"}, &tenant)).To(Succeed())
	g.Expect(tenant.Status.Retry.Attempts).To(BeZero())
	g.Expect(tenant.Status.Retry.LastHandledRequest).To(HavePrefix("phase-Failed-"))
	h.removeTenants(t, "alice-default")
}

func failedAndCounted(g Gomega, conditions []metav1.Condition, retry v1alpha1.RetryStatus) {
	for _, kind := range []string{"Ready", "Stalled"} {
		condition := meta.FindStatusCondition(conditions, kind)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.Reason).To(Equal("ImagePullFailed"))
		g.Expect(condition.Message).To(ContainSubstring(brokenImage))
	}
	g.Expect(retry.Attempts).To(BeNumerically(">=", 1))
	g.Expect(retry.LastError).NotTo(BeNil())
	g.Expect(retry.LastError.Reason).To(Equal("ImagePullFailed"))
	g.Expect(retry.NextRetryTime).NotTo(BeNil())
}

// controlPlanePod is the UID of the pod with the API server of alice-default.
func (h *host) controlPlanePod(t *testing.T) types.UID {
	t.Helper()
	g := NewWithT(t)
	var pods corev1.PodList
	g.Expect(h.WithWatch.List(t.Context(), &pods, client.InNamespace("vcluster-alice-default"), client.MatchingLabels{"app": "vcluster"})).To(Succeed())
	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp.IsZero() {
			return pods.Items[i].UID
		}
	}
	return ""
}

// configure installs the platform again with changes in its PlatformConfig.
func (h *host) configure(ctx context.Context, t *testing.T, change func(*configv1alpha1.PlatformConfig)) {
	t.Helper()
	g := NewWithT(t)
	config := fromFile(t, "../../config/local/platform-config.yaml", &configv1alpha1.PlatformConfig{})
	change(config)
	text, err := yaml.Marshal(config)
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "platform-config.yaml")
	g.Expect(os.WriteFile(file, text, 0o600)).To(Succeed())
	deploy := exec.CommandContext(ctx, "../../hack/deploy.sh")
	deploy.Env = append(os.Environ(), "PLATFORM_CONFIG="+file, "IMAGES="+strings.Join(h.platformImages(ctx, t), " "))
	out, err := deploy.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
}

// platformImages are those of the platform's own commands, as they run.
func (h *host) platformImages(ctx context.Context, t *testing.T) []string {
	t.Helper()
	var images []string
	for _, command := range []client.ObjectKey{
		{Namespace: "kubeopera-system", Name: "tenant-controller"}, {Namespace: "kubeopera-core", Name: "kubeopera-api"},
	} {
		var deployment appsv1.Deployment
		NewWithT(t).Expect(h.Get(ctx, command, &deployment)).To(Succeed())
		images = append(images, deployment.Spec.Template.Spec.Containers[0].Image)
	}
	return images
}

// onNode runs a command in the namespaces of the host cluster's node.
func (h *host) onNode(ctx context.Context, t *testing.T, command ...string) {
	t.Helper()
	hostcluster(ctx, t, append([]string{"exec", "--"}, command...)...)
}
