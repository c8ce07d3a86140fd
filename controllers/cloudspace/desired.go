// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// Roles of charts; also the names of their HelmRepositories, shared by all CloudSpaces.
const (
	roleControlPlane = "vcluster"
	roleFlux         = "cloudspace-flux"
	roleAdvisor      = "app-advisor"
)

// Objects of ours in a host namespace.
const (
	accessName = "tenant-controller"
	limitsName = "cloudspace"
)

// hostReaderRole is the ClusterRole that config/rbac ships for reading the kubeconfig Secret in a host namespace.
const hostReaderRole = "tenant-controller-host-namespace"

// chartInterval is how often Flux looks whether an exact version of a chart is still the same: it does not change.
const chartInterval = 24 * time.Hour

// maxReleaseHistory bounds the Secrets in which Helm keeps earlier revisions.
const maxReleaseHistory = 3

func desiredNamespace(s *scope, platform *configv1alpha1.PlatformConfig) *corev1.Namespace {
	namespace := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.names.HostNamespace(),
			Labels: map[string]string{
				"pod-security.kubernetes.io/enforce":         "baseline",
				"pod-security.kubernetes.io/enforce-version": "latest",
			},
		},
		// As Kubernetes fills it in.
		Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
	}
	if len(platform.Images.PullSecrets) > 0 {
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, annotationPulls, pullSecretsCopied)
	}
	return namespace
}

// desiredAccess lets the operator read Secrets in this one namespace: it may read none cluster-wide.
func desiredAccess(s *scope) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: accessName, Namespace: s.names.HostNamespace()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: hostReaderRole},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "tenant-controller", Namespace: names.SystemNamespace}},
	}
}

func desiredRepository(role string, chart *configv1alpha1.Chart, platform *configv1alpha1.PlatformConfig) *sourcev1.HelmRepository {
	repository := &sourcev1.HelmRepository{
		ObjectMeta: metav1.ObjectMeta{Name: role, Namespace: names.SystemNamespace},
		Spec: sourcev1.HelmRepositorySpec{
			URL:      chart.Repository,
			Interval: platform.Helm.Interval,
			Insecure: chart.Insecure,
			Provider: "generic",
		},
	}
	if chart.SecretName != "" {
		repository.Spec.SecretRef = &meta.LocalObjectReference{Name: chart.SecretName}
	}
	if chart.CertSecretName != "" {
		repository.Spec.CertSecretRef = &meta.LocalObjectReference{Name: chart.CertSecretName}
	}
	if strings.HasPrefix(chart.Repository, "oci://") {
		repository.Spec.Type = sourcev1.HelmRepositoryTypeOCI
	}
	return repository
}

func desiredChart(role string, chart *configv1alpha1.Chart) *sourcev1.HelmChart {
	return &sourcev1.HelmChart{
		ObjectMeta: metav1.ObjectMeta{Name: chartObjectName(role, chart), Namespace: names.SystemNamespace},
		Spec: sourcev1.HelmChartSpec{
			Chart:             chart.Name,
			Version:           chart.Version,
			SourceRef:         sourcev1.LocalHelmChartSourceReference{Kind: sourcev1.HelmRepositoryKind, Name: role},
			Interval:          metav1.Duration{Duration: chartInterval},
			ReconcileStrategy: sourcev1.ReconcileStrategyChartVersion,
		},
	}
}

// chartObjectName has the version in it: CloudSpaces that are not upgraded yet keep theirs.
func chartObjectName(role string, chart *configv1alpha1.Chart) string {
	return role + "-" + strings.ToLower(strings.ReplaceAll(chart.Version, "+", "-"))
}

// desiredControlPlane is the HelmRelease of the vCluster, with the revision of what it makes on all its objects.
func desiredControlPlane(s *scope, platform *configv1alpha1.PlatformConfig, values Values) (*helmv2.HelmRelease, error) {
	keepLoadBalancerClass(&values, s.observed.controlPlane)
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	patches, err := pullSecretPatches(s.names, platform.Images.PullSecrets)
	if err != nil {
		return nil, err
	}
	patches = append([]kustomize.Patch{controlPlanePriority(s.names)}, patches...)
	release := desiredControlPlaneRelease(s, platform)
	release.Spec.Values = &apiextensionsv1.JSON{Raw: text}
	release.Spec.PostRenderers = []helmv2.PostRenderer{{Kustomize: &helmv2.Kustomize{Patches: patches}}}
	release.Spec.CommonMetadata.Annotations = map[string]string{annotationRevision: Revision(release)}
	return release, nil
}

// desiredControlPlaneRelease is all of that HelmRelease but what decides what the control plane is. A failed install is never
// uninstalled between tries: that would remove the certificate authority and keep the data. Our labels on all it installs let the
// operator watch the workloads.
func desiredControlPlaneRelease(s *scope, platform *configv1alpha1.PlatformConfig) *helmv2.HelmRelease {
	release := desiredRelease(s.names.ControlPlaneRelease(), roleControlPlane, &platform.Charts.VCluster, platform)
	release.Spec.ReleaseName = s.names.HostName()
	release.Spec.TargetNamespace = s.names.HostNamespace()
	release.Spec.StorageNamespace = names.SystemNamespace
	release.Spec.ServiceAccountName = platform.Helm.ServiceAccountName
	release.Spec.DriftDetection = &helmv2.DriftDetection{Mode: helmv2.DriftDetectionEnabled}
	release.Spec.CommonMetadata = &helmv2.CommonMetadata{Labels: s.owner.Labels()}
	return release
}

// controlPlanePriority sets the PriorityClass from outside: the chart renders the value for it twice, which Flux refuses.
func controlPlanePriority(n names.CloudSpace) kustomize.Patch {
	return kustomize.Patch{
		Target: &kustomize.Selector{Group: "apps", Version: "v1", Kind: "Deployment", Name: n.HostName()},
		Patch:  fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/priorityClassName", "value": %q}]`, names.ControlPlanePriorityClass),
	}
}

// desiredInner is a HelmRelease that is installed into the CloudSpace with its own kubeconfig.
func desiredInner(s *scope, platform *configv1alpha1.PlatformConfig, role string, chart *configv1alpha1.Chart) (*helmv2.HelmRelease, error) {
	values, err := innerValues(platform, chart)
	if err != nil {
		return nil, err
	}
	name, namespace := s.names.FluxRelease(), names.FluxNamespace
	if role == roleAdvisor {
		name, namespace = s.names.AdvisorRelease(), roleAdvisor
	}
	release := desiredRelease(name, role, chart, platform)
	release.Spec.ReleaseName = chart.Name
	release.Spec.TargetNamespace = namespace
	release.Spec.StorageNamespace = namespace
	release.Spec.Install.CreateNamespace = true
	release.Spec.Install.CRDs = helmv2.CreateReplace
	release.Spec.Upgrade.CRDs = helmv2.CreateReplace
	release.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: s.fluxKubeconfigSecret(), Key: kubeconfigKey}}
	release.Spec.Values = values
	return release, nil
}

// desiredRelease does not let Helm wait for what it installs: the operator sees for itself when it runs. Flux works on few
// releases at a time, and one that waits, for a broken CloudSpace perhaps, would keep others from their turn, and its own
// deletion too. Nor does it let Flux try again: that is the operator's, with its backoff.
func desiredRelease(name, role string, chart *configv1alpha1.Chart, platform *configv1alpha1.PlatformConfig) *helmv2.HelmRelease {
	timeout, history := platform.Helm.Timeout, maxReleaseHistory
	return &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: names.SystemNamespace},
		Spec: helmv2.HelmReleaseSpec{
			Interval:   platform.Helm.Interval,
			Timeout:    &timeout,
			MaxHistory: &history,
			ChartRef:   &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.HelmChartKind, Name: chartObjectName(role, chart)},
			Install:    &helmv2.Install{DisableWait: true},
			Upgrade:    &helmv2.Upgrade{DisableWait: true},
		},
	}
}

// innerValues are the chart's values: the image registry of the platform, and over it what the PlatformConfig gives.
func innerValues(platform *configv1alpha1.PlatformConfig, chart *configv1alpha1.Chart) (*apiextensionsv1.JSON, error) {
	values := map[string]any{}
	if platform.Images.Registry != "" {
		values["image"] = map[string]any{"registry": platform.Images.Registry}
	}
	if chart.Values != nil {
		over := map[string]any{}
		if err := json.Unmarshal(chart.Values.Raw, &over); err != nil {
			return nil, fmt.Errorf("values of chart %s: %w", chart.Name, err)
		}
		values = overlay(values, over)
	}
	text, err := json.Marshal(values)
	return &apiextensionsv1.JSON{Raw: text}, err
}

// overlay merges maps as Helm does: what is not a map on both sides is replaced.
func overlay(base, over map[string]any) map[string]any {
	for key, value := range over {
		below, isMap := base[key].(map[string]any)
		above, alsoMap := value.(map[string]any)
		if isMap && alsoMap {
			value = overlay(below, above)
		}
		base[key] = value
	}
	return base
}

// desiredKubeconfig is for people, with the server that the CloudSpace's endpoint has.
func desiredKubeconfig(s *scope) *corev1.Secret {
	return kubeconfigOf(s.names.KubeconfigSecret(), s.observed.credentials.text)
}

// desiredInternalKubeconfig is for Flux on the host, where desiredKubeconfig leads to an endpoint outside.
func desiredInternalKubeconfig(s *scope) *corev1.Secret {
	return kubeconfigOf(s.names.InternalKubeconfigSecret(), s.observed.credentials.internal)
}

// kubeconfigOf is under two keys: Flux and cluster-api tools look for value, people for config. Its label makes Flux take up a
// rotated kubeconfig at once.
func kubeconfigOf(name string, text []byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: names.SystemNamespace,
			Labels:    map[string]string{meta.LabelKeyWatch: meta.LabelValueWatchEnabled},
		},
		Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{kubeconfigKey: text, kubeconfigSourceKey: text},
	}
}
