// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func TestFluxContainersHaveRequestsAndLimits(t *testing.T) {
	bounded := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	for controller, deployment := range renderDeployments(t, "") {
		pod := deployment.Spec.Template.Spec
		for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, name := range bounded {
				request, limit := container.Resources.Requests[name], container.Resources.Limits[name]
				if request.Sign() <= 0 {
					t.Errorf("%s: container %s has no request for %s", controller, container.Name, name)
				}
				if limit.Cmp(request) < 0 {
					t.Errorf("%s: container %s has limit %s for %s, below its request %s",
						controller, container.Name, limit.String(), name, request.String())
				}
			}
		}
	}
}

func TestFluxFitsTheSmallestCloudSpace(t *testing.T) {
	requests := corev1.ResourceList{}
	for _, deployment := range renderDeployments(t, "") {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			for name, amount := range container.Resources.Requests {
				sum := requests[name]
				sum.Add(amount)
				requests[name] = sum
			}
		}
	}
	atMost := map[corev1.ResourceName]string{
		corev1.ResourceCPU: "60m", corev1.ResourceMemory: "144Mi", corev1.ResourceEphemeralStorage: "128Mi",
	}
	for name, most := range atMost {
		if sum := requests[name]; sum.Cmp(resource.MustParse(most)) > 0 {
			t.Errorf("the controllers request %s of %s, more than the %s a CloudSpace sets aside", sum.String(), name, most)
		}
	}
}

func TestFluxPodsSatisfyTheRestrictedPodSecurityStandard(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatalf("building the evaluator: %v", err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for controller, deployment := range renderDeployments(t, "") {
		template := deployment.Spec.Template
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec))
		if !result.Allowed {
			t.Errorf("%s: %s", controller, result.ForbiddenDetail())
		}
	}
}

func TestFluxPodsCannotWriteTheirRootFileSystem(t *testing.T) {
	for controller, deployment := range renderDeployments(t, "") {
		for _, container := range deployment.Spec.Template.Spec.Containers {
			readOnly := container.SecurityContext.ReadOnlyRootFilesystem
			if readOnly == nil || !*readOnly {
				t.Errorf("%s: the root file system of container %s can be written", controller, container.Name)
			}
		}
	}
}

func TestFluxPodsKeepNothingInVolumeClaims(t *testing.T) {
	for controller, deployment := range renderDeployments(t, "") {
		for _, volume := range deployment.Spec.Template.Spec.Volumes {
			if volume.EmptyDir == nil {
				t.Errorf("%s: volume %s is not an emptyDir", controller, volume.Name)
			}
		}
	}
}

func TestFluxPodsRunAsTheirOwnServiceAccount(t *testing.T) {
	accounts := map[string]bool{}
	for _, account := range objectsOf[*corev1.ServiceAccount](renderFlux(t, "")) {
		accounts[account.Name] = true
	}
	for controller, deployment := range renderDeployments(t, "") {
		account := deployment.Spec.Template.Spec.ServiceAccountName
		if account != controller || !accounts[account] {
			t.Errorf("%s: runs as %q, want a ServiceAccount of the chart with its own name", controller, account)
		}
	}
}

func TestOnlyTheReconcilersAreClusterAdmin(t *testing.T) {
	got := map[string][]string{}
	for _, binding := range objectsOf[*rbacv1.ClusterRoleBinding](renderFlux(t, "")) {
		for _, subject := range binding.Subjects {
			who := subject.Kind + " " + subject.Namespace + "/" + subject.Name
			got[binding.RoleRef.Name] = append(got[binding.RoleRef.Name], who)
		}
	}
	want := map[string][]string{
		"cluster-admin":                     {"ServiceAccount flux-system/kustomize-controller", "ServiceAccount flux-system/helm-controller"},
		"cloudspace-flux-source-controller": {"ServiceAccount flux-system/source-controller"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("bindings differ (-want +got):\n%s", diff)
	}
}

func TestSourceControllerWritesOnlySourcesEventsAndTokens(t *testing.T) {
	roles := objectsOf[*rbacv1.ClusterRole](renderFlux(t, ""))
	if len(roles) != 1 {
		t.Fatalf("%d ClusterRoles, want one", len(roles))
	}
	reading := []string{"get", "list", "watch"}
	writable := map[string]bool{"events": true, "serviceaccounts/token": true}
	for _, rule := range roles[0].Rules {
		writes := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return !slices.Contains(reading, verb) })
		if !writes || slices.Equal(rule.APIGroups, []string{"source.toolkit.fluxcd.io"}) {
			continue
		}
		for _, name := range rule.Resources {
			if !writable[name] {
				t.Errorf("source-controller may %v %s of groups %q", rule.Verbs, name, rule.APIGroups)
			}
		}
	}
}
