// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestFluxChartPassesHelmLint(t *testing.T) {
	linter := lint.RunAll(fluxChart, nil, fluxNamespace,
		lint.WithKubeVersion(&common.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}))
	for _, message := range linter.Messages {
		if message.Severity > support.InfoSev {
			t.Error(message.Error())
		}
	}
}

func TestFluxChartRendersExactlyTheseObjects(t *testing.T) {
	want := []string{
		"ClusterRole - cloudspace-flux-source-controller",
		"ClusterRoleBinding - cloudspace-flux-reconcilers",
		"ClusterRoleBinding - cloudspace-flux-source-controller",
		"Deployment flux-system helm-controller",
		"Deployment flux-system kustomize-controller",
		"Deployment flux-system source-controller",
		"Service flux-system source-controller",
		"ServiceAccount flux-system helm-controller",
		"ServiceAccount flux-system kustomize-controller",
		"ServiceAccount flux-system source-controller",
	}
	var got []string
	for _, object := range renderFlux(t, "") {
		got = append(got, identify(t, object))
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects differ (-want +got):\n%s", diff)
	}
}

func TestFluxChartNotesNameTheNamespace(t *testing.T) {
	loaded, values, err := renderValues(t, "")
	if err != nil {
		t.Fatalf("merging values: %v", err)
	}
	files, err := engine.Render(loaded, values)
	if err != nil {
		t.Fatalf("rendering: %v", err)
	}
	notes := files["cloudspace-flux/templates/NOTES.txt"]
	if want := "kubectl -n flux-system get deployments"; !strings.Contains(notes, want) {
		t.Errorf("notes lack %q:\n%s", want, notes)
	}
}

func TestFluxChartSchemaRejects(t *testing.T) {
	tests := map[string]struct{ values, path, reason string }{
		"an unknown value":                 {"notificationController: {}", "''", "notificationController"},
		"an unknown image value":           {"image: {repository: x}", "'/image'", "repository"},
		"an unknown controller value":      {"sourceController: {replicas: 2}", "'/sourceController'", "replicas"},
		"an unknown kind of amounts":       {"helmController: {resources: {claims: []}}", "'/helmController/resources'", "claims"},
		"an unknown resource":              {"helmController: {resources: {limits: {gpu: 1}}}", "'/helmController/resources/limits'", "gpu"},
		"an unknown pull secret field":     {"imagePullSecrets: [{name: a, key: b}]", "'/imagePullSecrets/0'", "key"},
		"a pull secret as plain text":      {"imagePullSecrets: [a]", "'/imagePullSecrets/0'", "want object"},
		"a missing CPU limit":              {"sourceController: {resources: {limits: {cpu: null}}}", "'/sourceController/resources/limits'", "cpu"},
		"a missing memory request":         {"sourceController: {resources: {requests: {memory: null}}}", "'/sourceController/resources/requests'", "memory"},
		"a missing ephemeral storage":      {"kustomizeController: {resources: {limits: {ephemeral-storage: null}}}", "'/kustomizeController/resources/limits'", "ephemeral-storage"},
		"missing limits":                   {"kustomizeController: {resources: {limits: null}}", "'/kustomizeController/resources'", "limits"},
		"an amount of zero":                {"helmController: {resources: {requests: {cpu: 0m}}}", "'/helmController/resources/requests/cpu'", "pattern"},
		"a negative amount":                {"helmController: {resources: {requests: {cpu: -1}}}", "'/helmController/resources/requests/cpu'", "exclusiveMinimum"},
		"an amount without a known suffix": {"helmController: {resources: {limits: {memory: 256MB}}}", "'/helmController/resources/limits/memory'", "pattern"},
		"a tag that moves":                 {"helmController: {tag: latest}", "'/helmController/tag'", "pattern"},
		"no tag":                           {"helmController: {tag: null}", "'/helmController'", "tag"},
		"a registry with a scheme":         {"image: {registry: 'https://ghcr.io'}", "'/image/registry'", "pattern"},
		"a registry with a trailing slash": {"image: {registry: ghcr.io/}", "'/image/registry'", "pattern"},
		"no registry":                      {"image: {registry: ''}", "'/image/registry'", "pattern"},
		"an unknown pull policy":           {"image: {pullPolicy: Sometimes}", "'/image/pullPolicy'", "must be one of"},
		"an unknown log level":             {"logLevel: verbose", "'/logLevel'", "must be one of"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := renderValues(t, test.values)
			if err == nil {
				t.Fatalf("values %q are accepted", test.values)
			}
			if !strings.Contains(err.Error(), "at "+test.path) || !strings.Contains(err.Error(), test.reason) {
				t.Errorf("error should name %s and %q, is: %v", test.path, test.reason, err)
			}
		})
	}
}

func TestFluxChartSchemaAccepts(t *testing.T) {
	tests := map[string]string{
		"the defaults":                   "",
		"a registry with a port":         "image: {registry: 'registry.example:5000'}",
		"a registry with a path":         "image: {registry: 'mirror.example.com/proxy/ghcr.io'}",
		"whole numbers":                  "helmController: {resources: {limits: {cpu: 2}}}",
		"amounts with a decimal point":   "helmController: {resources: {limits: {cpu: '0.5', memory: 1.5Gi}}}",
		"a release candidate":            "helmController: {tag: v1.7.0-rc.1}",
		"pull secrets":                   "imagePullSecrets: [{name: mirror}, {name: other}]",
		"another log level and a policy": "{logLevel: debug, image: {pullPolicy: Always}}",
	}
	for name, values := range tests {
		t.Run(name, func(t *testing.T) {
			if _, _, err := renderValues(t, values); err != nil {
				t.Errorf("values %q are rejected: %v", values, err)
			}
		})
	}
}

func TestFluxControllersRunReleasedImages(t *testing.T) {
	tests := map[string]struct {
		values string
		want   map[string]string
	}{
		"by default": {
			want: map[string]string{
				"source-controller":    "ghcr.io/fluxcd/source-controller:v1.9.6",
				"kustomize-controller": "ghcr.io/fluxcd/kustomize-controller:v1.9.6",
				"helm-controller":      "ghcr.io/fluxcd/helm-controller:v1.6.3",
			},
		},
		"from a mirror": {
			values: "{image: {registry: 'mirror.example.com:5000/ghcr'}, helmController: {tag: v1.6.4}}",
			want: map[string]string{
				"source-controller":    "mirror.example.com:5000/ghcr/fluxcd/source-controller:v1.9.6",
				"kustomize-controller": "mirror.example.com:5000/ghcr/fluxcd/kustomize-controller:v1.9.6",
				"helm-controller":      "mirror.example.com:5000/ghcr/fluxcd/helm-controller:v1.6.4",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for controller, deployment := range renderDeployments(t, test.values) {
				got[controller] = deployment.Spec.Template.Spec.Containers[0].Image
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("images differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFluxPullSettingsReachEveryPod(t *testing.T) {
	values := "{image: {pullPolicy: Always}, imagePullSecrets: [{name: mirror}]}"
	for controller, deployment := range renderDeployments(t, values) {
		pod := deployment.Spec.Template.Spec
		if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: "mirror"}}, pod.ImagePullSecrets); diff != "" {
			t.Errorf("%s: pull secrets differ (-want +got):\n%s", controller, diff)
		}
		if got := pod.Containers[0].ImagePullPolicy; got != corev1.PullAlways {
			t.Errorf("%s: pull policy is %q, want Always", controller, got)
		}
	}
	for controller, deployment := range renderDeployments(t, "") {
		if got := deployment.Spec.Template.Spec.Containers[0].ImagePullPolicy; got != corev1.PullIfNotPresent {
			t.Errorf("%s: default pull policy is %q, want IfNotPresent", controller, got)
		}
	}
}

func TestFluxControllersGetTheirFlags(t *testing.T) {
	shared := []string{"--watch-all-namespaces", "--log-level=debug", "--log-encoding=json", "--events-addr="}
	want := map[string][]string{
		"source-controller": append(slices.Clone(shared), "--storage-path=/data",
			"--storage-adv-addr=source-controller.$(RUNTIME_NAMESPACE).svc.cluster.local."),
		"kustomize-controller": shared,
		"helm-controller":      append(slices.Clone(shared), "--graceful-shutdown-timeout=50s"),
	}
	got := map[string][]string{}
	for controller, deployment := range renderDeployments(t, "logLevel: debug") {
		got[controller] = deployment.Spec.Template.Spec.Containers[0].Args
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flags differ (-want +got):\n%s", diff)
	}
}

func TestFluxControllersNeverRunTwice(t *testing.T) {
	for controller, deployment := range renderDeployments(t, "") {
		if replicas := deployment.Spec.Replicas; replicas == nil || *replicas != 1 {
			t.Errorf("%s: replicas is %v, want 1: there is no leader election", controller, replicas)
		}
		if got := deployment.Spec.Strategy.Type; got != appsv1.RecreateDeploymentStrategyType {
			t.Errorf("%s: strategy is %q, want Recreate: there is no leader election", controller, got)
		}
	}
}

func TestFluxControllersAreProbed(t *testing.T) {
	for controller, deployment := range renderDeployments(t, "") {
		container := deployment.Spec.Template.Spec.Containers[0]
		ports := map[string]bool{}
		for _, port := range container.Ports {
			ports[port.Name] = true
		}
		probes := map[string]*corev1.Probe{
			"startup": container.StartupProbe, "readiness": container.ReadinessProbe, "liveness": container.LivenessProbe,
		}
		for name, probe := range probes {
			if probe == nil || probe.HTTPGet == nil {
				t.Errorf("%s: no %s probe over HTTP", controller, name)
				continue
			}
			if port := probe.HTTPGet.Port.StrVal; !ports[port] {
				t.Errorf("%s: %s probe asks port %q, which the container does not name", controller, name, port)
			}
		}
	}
}

func TestFluxServiceReachesSourceController(t *testing.T) {
	services := objectsOf[*corev1.Service](renderFlux(t, ""))
	if len(services) != 1 {
		t.Fatalf("%d Services, want one", len(services))
	}
	pod := renderDeployments(t, "")["source-controller"].Spec.Template
	for label, value := range services[0].Spec.Selector {
		if pod.Labels[label] != value {
			t.Errorf("Service selects %s=%s, pod has %q", label, value, pod.Labels[label])
		}
	}
	port := services[0].Spec.Ports[0]
	if port.Port != 80 {
		t.Errorf("Service port is %d, want 80: artifact addresses name no port", port.Port)
	}
	named := slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool {
		return p.Name == port.TargetPort.StrVal && p.ContainerPort == 9090
	})
	if !named {
		t.Errorf("Service targets port %q, which is not the pod's 9090", port.TargetPort.StrVal)
	}
}

// docs/install.md lists what is to be mirrored.
func TestTheDocsListTheImagesOfFlux(t *testing.T) {
	docs, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, deployment := range renderDeployments(t, "") {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			if !strings.Contains(string(docs), "`"+container.Image+"`") {
				t.Errorf("docs/install.md does not list %s", container.Image)
			}
		}
	}
}
