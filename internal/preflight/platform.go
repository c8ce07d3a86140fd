// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// notGiven is what is found when there is no PlatformConfig to compare with.
const notGiven = "not compared: no PlatformConfig was given"

// checkServiceRange compares with the ranges that the API server gives Services addresses from.
func checkServiceRange(ctx context.Context, client cluster) (found, missing string, err error) {
	if client.platform == nil {
		return notGiven, "", nil
	}
	list, err := client.NetworkingV1().ServiceCIDRs().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", "", err
	}
	var ranges []string
	for i := range list.Items {
		ranges = append(ranges, list.Items[i].Spec.CIDRs...)
	}
	said := client.platform.Host.ServiceCIDR
	if !slices.Contains(ranges, said) {
		return "", fmt.Sprintf("the PlatformConfig says %s, the cluster has %s: set host.serviceCIDR", said, strings.Join(ranges, ", ")), nil
	}
	return said, "", nil
}

// checkHostnames looks for what leads from the hostnames of CloudSpaces to them, where the PlatformConfig offers hostnames. Without it
// the operator does not start, or no such CloudSpace is reached.
func checkHostnames(ctx context.Context, client cluster) (found, missing string, err error) {
	if client.platform == nil {
		return notGiven, "", nil
	}
	switch offer := client.platform.Endpoint.Hostname; {
	case offer == nil:
		return "not offered", "", nil
	case offer.TLSRoute != nil:
		return checkTLSRoutes(client)
	case offer.Ingress != nil && offer.Ingress.ClassName != "":
		return checkIngressClass(ctx, client, offer.Ingress.ClassName)
	default:
		return "by the default IngressClass, or by annotations", "", nil
	}
}

func checkTLSRoutes(client cluster) (found, missing string, err error) {
	lacking, err := notServed(client, map[string][]string{gatewayv1.GroupVersion.String(): {"tlsroutes"}})
	if err != nil || len(lacking) == 0 {
		return "TLSRoute", "", err
	}
	return "", "the PlatformConfig says endpoint.hostname.tlsRoute: install the Gateway API with TLSRoute; not served: " + lacking[0], nil
}

func checkIngressClass(ctx context.Context, client cluster, name string) (found, missing string, err error) {
	_, err = client.NetworkingV1().IngressClasses().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Sprintf("there is no IngressClass %s: install its controller, or set endpoint.hostname.ingress.className", name), nil
	}
	return "IngressClass " + name, "", err
}

// checkSecrets looks for the Secrets that the PlatformConfig names.
func checkSecrets(ctx context.Context, client cluster) (found, missing string, err error) {
	if client.platform == nil {
		return notGiven, "", nil
	}
	wanted := wantedSecrets(client.platform)
	var lacking []string
	for _, name := range wanted {
		secret, err := client.CoreV1().Secrets(names.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			lacking = append(lacking, name)
		case err != nil:
			return "", "", err
		case slices.Contains(client.platform.Images.PullSecrets, name) && secret.Type != corev1.SecretTypeDockerConfigJson:
			lacking = append(lacking, fmt.Sprintf("%s (is of type %s)", name, secret.Type))
		}
	}
	if len(lacking) > 0 {
		return "", fmt.Sprintf("the PlatformConfig names Secrets that are not in %s: %s", names.SystemNamespace, strings.Join(lacking, ", ")), nil
	}
	return fmt.Sprintf("%d named, all there", len(wanted)), "", nil
}

func wantedSecrets(platform *configv1alpha1.PlatformConfig) []string {
	wanted := slices.Clone(platform.Images.PullSecrets)
	for _, chart := range []*configv1alpha1.Chart{&platform.Charts.VCluster, &platform.Charts.Flux, platform.Charts.Advisor} {
		if chart == nil {
			continue
		}
		for _, name := range []string{chart.SecretName, chart.CertSecretName} {
			if name != "" {
				wanted = append(wanted, name)
			}
		}
	}
	slices.Sort(wanted)
	return slices.Compact(wanted)
}
