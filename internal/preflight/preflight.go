// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preflight checks whether a cluster can be a host cluster, before anything is installed there.
package preflight

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
)

// minimumVersion is the first Kubernetes that serves MutatingAdmissionPolicy by default.
var minimumVersion = version.MustParseGeneric("1.36.0")

// ErrNotReady says that something is missing; what, was printed.
var ErrNotReady = errors.New("the cluster cannot be a host cluster yet")

// cluster is what is checked, and what for.
type cluster struct {
	kubernetes.Interface
	// platform is nil when none was given.
	platform *configv1alpha1.PlatformConfig
}

// check finds out one thing. found says what there is; missing says what is not, and what to do. Both are one line.
type check struct {
	name string
	do   func(context.Context, cluster) (found, missing string, err error)
}

// unknowable is what no API tells.
const unknowable = `?        network policies      whether they are enforced cannot be asked: docs/install.md, Network policies, has a trial
?        LoadBalancer          only for such endpoints: make a Service of that type, and see whether it gets an address
`

var checks = []check{
	{"Kubernetes version", checkVersion},
	{"admission policies", checkAdmission},
	{"Flux", checkFlux},
	{"default StorageClass", checkStorageClass},
	{"service range", checkServiceRange},
	{"hostnames", checkHostnames},
	{"Secrets", checkSecrets},
	{"rights", checkRights},
}

// Run makes all checks and prints a line for each. The platform may be nil: what it says is then not compared. The error is
// ErrNotReady when something is missing, or that of a call that failed.
func Run(ctx context.Context, client kubernetes.Interface, platform *configv1alpha1.PlatformConfig, out io.Writer) error {
	var result error
	for _, c := range checks {
		found, missing, err := c.do(ctx, cluster{client, platform})
		if err != nil {
			return fmt.Errorf("checking the %s: %w", c.name, err)
		}
		if missing != "" {
			result = ErrNotReady
			_, _ = fmt.Fprintf(out, "missing  %-20s  %s\n", c.name, missing)
			continue
		}
		_, _ = fmt.Fprintf(out, "ok       %-20s  %s\n", c.name, found)
	}
	_, _ = io.WriteString(out, unknowable)
	return result
}

func checkVersion(_ context.Context, client cluster) (found, missing string, err error) {
	info, err := client.Discovery().ServerVersion()
	if err != nil {
		return "", "", err
	}
	server, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return "", "", err
	}
	if server.LessThan(minimumVersion) {
		return "", fmt.Sprintf("the cluster has %s, at least v%s is needed", info.GitVersion, minimumVersion), nil
	}
	return info.GitVersion, "", nil
}

func checkAdmission(_ context.Context, client cluster) (found, missing string, err error) {
	lacking, err := notServed(client, map[string][]string{
		"admissionregistration.k8s.io/v1": {"mutatingadmissionpolicies", "validatingadmissionpolicies"},
	})
	if err != nil || len(lacking) == 0 {
		return "mutating and validating", "", err
	}
	return "", "the API server must serve them; not served: " + strings.Join(lacking, ", "), nil
}

func checkFlux(ctx context.Context, client cluster) (found, missing string, err error) {
	lacking, err := notServed(client, map[string][]string{
		"source.toolkit.fluxcd.io/v1": {"helmcharts", "helmrepositories"},
		"helm.toolkit.fluxcd.io/v2":   {"helmreleases"},
	})
	if err != nil {
		return "", "", err
	}
	if len(lacking) > 0 {
		return "", "install Flux's source-controller and helm-controller; not served: " + strings.Join(lacking, ", "), nil
	}
	return fluxRuns(ctx, client)
}

// fluxRuns looks for the controllers by the label that their Deployments have however Flux was installed, outside of CloudSpaces.
func fluxRuns(ctx context.Context, client cluster) (found, missing string, err error) {
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "app in (source-controller,helm-controller)"})
	if err != nil {
		return "", "", err
	}
	running := map[string]bool{}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.Phase == corev1.PodRunning && !strings.HasPrefix(pod.Namespace, "vcluster-") {
			running[pod.Labels["app"]] = true
		}
	}
	for _, name := range []string{"source-controller", "helm-controller"} {
		if !running[name] {
			return "", "its kinds are served, and no pod with the label app=" + name + " runs", nil
		}
	}
	return "source.toolkit.fluxcd.io/v1, helm.toolkit.fluxcd.io/v2", "", nil
}

// notServed names the resources, by group and version, that the API server does not have.
func notServed(client cluster, wanted map[string][]string) (lacking []string, err error) {
	for groupVersion, resources := range wanted {
		list, err := client.Discovery().ServerResourcesForGroupVersion(groupVersion)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		for _, resource := range resources {
			if list == nil || !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }) {
				lacking = append(lacking, resource+" of "+groupVersion)
			}
		}
	}
	slices.Sort(lacking)
	return lacking, nil
}

func checkStorageClass(ctx context.Context, client cluster) (found, missing string, err error) {
	list, err := client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", "", err
	}
	for i := range list.Items {
		if isDefault(&list.Items[i]) {
			return list.Items[i].Name, "", nil
		}
	}
	return "", "mark one with the annotation storageclass.kubernetes.io/is-default-class=true", nil
}

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true"
}

// needed are rights that only an administrator of the cluster has, and that installing takes.
var needed = []authorizationv1.ResourceAttributes{
	{Verb: "create", Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Verb: "escalate", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
	{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "clusterrolebindings"},
	{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "mutatingadmissionpolicies"},
	{Verb: "create", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	{Verb: "create", Group: "scheduling.k8s.io", Resource: "priorityclasses"},
	{Verb: "create", Resource: "namespaces"},
}

func checkRights(ctx context.Context, client cluster) (found, missing string, err error) {
	var lacking []string
	for i := range needed {
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &needed[i]},
		}, metav1.CreateOptions{})
		if err != nil {
			return "", "", err
		}
		if !review.Status.Allowed {
			lacking = append(lacking, needed[i].Verb+" "+needed[i].Resource)
		}
	}
	if len(lacking) > 0 {
		return "", "install as an administrator of the cluster; not allowed: " + strings.Join(lacking, ", "), nil
	}
	return "may install", "", nil
}
