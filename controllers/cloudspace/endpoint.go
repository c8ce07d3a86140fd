// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

// endpointPort is where CloudSpaces are reached at every endpoint.
const endpointPort = "443"

// observeEndpoint reads what an endpoint outside the host cluster needs, if the platform offers it: only then is it watched.
func (r *Reconciler) observeEndpoint(ctx context.Context, s *scope) error {
	o, host, offer := &s.observed, s.names.HostNamespace(), r.Platform.Endpoint
	switch s.object.Spec.Endpoint.Type {
	case v1alpha1.EndpointLoadBalancer:
		if offer.LoadBalancer == nil {
			return nil
		}
		return errors.Join(r.observeInternal(ctx, s), apply.Read(ctx, r.Client, &o.service, host, s.names.HostName()))
	case v1alpha1.EndpointHostname:
		if offer.Hostname == nil {
			return nil
		}
		return errors.Join(r.observeInternal(ctx, s), r.observeClaim(ctx, s), r.observeRoutes(ctx, s))
	default:
		return nil
	}
}

// outside tells whether the endpoint is one outside the host cluster. Flux on the host then has a kubeconfig of its own.
func (s *scope) outside() bool {
	endpoint := s.object.Spec.Endpoint.Type
	return endpoint == v1alpha1.EndpointLoadBalancer || endpoint == v1alpha1.EndpointHostname
}

// fluxKubeconfigSecret is the Secret with which Flux on the host reaches the CloudSpace.
func (s *scope) fluxKubeconfigSecret() string {
	if s.outside() {
		return s.names.InternalKubeconfigSecret()
	}
	return s.names.KubeconfigSecret()
}

func (r *Reconciler) observeInternal(ctx context.Context, s *scope) error {
	return apply.Read(ctx, r.Client, &s.observed.internalKubeconfig, names.SystemNamespace, s.names.InternalKubeconfigSecret())
}

// admitEndpoint tells whether the CloudSpace may have the endpoint that it asks for. A hostname that it may not have any more is
// given up at once.
func (r *Reconciler) admitEndpoint(ctx context.Context, s *scope) error {
	asked := s.object.Spec.Endpoint
	if err := endpointOffered(asked, r.Platform.Endpoint); err != nil {
		return err
	}
	if asked.Type != v1alpha1.EndpointHostname || !s.observed.hostnameTaken && !reserved(asked.Hostname, r.Platform.Endpoint.Hostname) {
		return nil
	}
	if err := r.removeRoutes(ctx, s); err != nil {
		return err
	}
	return step.Terminal(v1alpha1.ReasonHostnameTaken, fmt.Sprintf("hostname %s is taken", asked.Hostname))
}

// endpointOffered tells whether the platform offers a type of endpoint, and names below such a domain.
func endpointOffered(asked v1alpha1.Endpoint, offer configv1alpha1.Endpoint) error {
	switch {
	case asked.Type == v1alpha1.EndpointLoadBalancer && offer.LoadBalancer == nil,
		asked.Type == v1alpha1.EndpointHostname && !offersHostnames(offer):
		return step.Terminal(v1alpha1.ReasonEndpointNotOffered,
			fmt.Sprintf("endpoint.type %s is not offered; offered are %s", asked.Type, strings.Join(offeredTypes(offer), ", ")))
	case asked.Type == v1alpha1.EndpointHostname && !below(asked.Hostname, offer.Hostname.Domains):
		return step.Terminal(v1alpha1.ReasonEndpointNotOffered,
			fmt.Sprintf("hostname %s is not offered; offered are names one label below %s", asked.Hostname, strings.Join(offer.Hostname.Domains, ", ")))
	default:
		return nil
	}
}

func offersHostnames(offer configv1alpha1.Endpoint) bool {
	return offer.Hostname != nil && len(offer.Hostname.Domains) > 0
}

func offeredTypes(offer configv1alpha1.Endpoint) []string {
	types := []string{string(v1alpha1.EndpointInCluster)}
	if offer.LoadBalancer != nil {
		types = append(types, string(v1alpha1.EndpointLoadBalancer))
	}
	if offersHostnames(offer) {
		types = append(types, string(v1alpha1.EndpointHostname))
	}
	return types
}

// below tells whether a hostname is exactly one label below a domain: no name is then below that of another CloudSpace.
func below(hostname string, domains []string) bool {
	_, parent, _ := strings.Cut(hostname, ".")
	return slices.Contains(domains, parent)
}

// reserved tells whether a hostname is the platform's own, as the domains themselves are.
func reserved(hostname string, offer *configv1alpha1.HostnameEndpoint) bool {
	return slices.Contains(offer.Reserved, hostname) || slices.Contains(offer.Domains, hostname)
}

// ensureEndpoint makes what leads to the CloudSpace and gives the URL under which it is reached.
func (r *Reconciler) ensureEndpoint(ctx context.Context, s *scope) (server string, err error) {
	if err := r.admitEndpoint(ctx, s); err != nil {
		return "", err
	}
	switch endpoint := s.object.Spec.Endpoint; endpoint.Type {
	case v1alpha1.EndpointLoadBalancer:
		return loadBalancerServer(s.observed.service)
	case v1alpha1.EndpointHostname:
		return "https://" + net.JoinHostPort(endpoint.Hostname, endpointPort), r.ensureRoute(ctx, s)
	default:
		return s.names.Endpoint(), nil
	}
}

// loadBalancerServer is the first address that the cloud has given. vCluster puts the addresses of its Service into its
// certificate by itself, within seconds and without a restart.
func loadBalancerServer(service *corev1.Service) (string, error) {
	if service == nil {
		return "", step.Wait(v1alpha1.ReasonWaitingForAddress, "waiting for the load balancer")
	}
	for _, given := range service.Status.LoadBalancer.Ingress {
		if address := cmp.Or(given.IP, given.Hostname); address != "" {
			return "https://" + net.JoinHostPort(address, endpointPort), nil
		}
	}
	return "", step.Wait(v1alpha1.ReasonWaitingForAddress, "waiting for the cloud to give the load balancer an address")
}

// endpointValues bring the endpoint into the values of the vCluster chart. The load balancer is the chart's own Service, since
// vCluster follows the addresses of that one alone. It has no node ports: they are few, and open on every node.
func endpointValues(values *Values, endpoint v1alpha1.Endpoint, offer configv1alpha1.Endpoint) {
	switch {
	case endpoint.Type == v1alpha1.EndpointHostname:
		values.ControlPlane.Proxy.ExtraSANs = append(values.ControlPlane.Proxy.ExtraSANs, endpoint.Hostname)
	case endpoint.Type == v1alpha1.EndpointLoadBalancer && offer.LoadBalancer != nil:
		values.ControlPlane.Service = &ServiceValues{
			Annotations: offer.LoadBalancer.Annotations,
			Spec:        ServiceSpecValues{Type: string(corev1.ServiceTypeLoadBalancer), LoadBalancerClass: offer.LoadBalancer.Class},
		}
	}
}

// keepLoadBalancerClass leaves the class that the Service was made with: Kubernetes does not let it change.
func keepLoadBalancerClass(values *Values, release *helmv2.HelmRelease) {
	service := values.ControlPlane.Service
	if service == nil || release == nil || release.Spec.Values == nil {
		return
	}
	before := Values{}
	if json.Unmarshal(release.Spec.Values.Raw, &before) == nil && before.ControlPlane.Service != nil {
		service.Spec.LoadBalancerClass = before.ControlPlane.Service.Spec.LoadBalancerClass
	}
}

// EndpointKinds are the kinds that are watched for endpoints outside the host cluster, as the platform offers them.
func EndpointKinds(offer configv1alpha1.Endpoint) []client.Object {
	var kinds []client.Object
	if offer.LoadBalancer != nil {
		kinds = append(kinds, &corev1.Service{})
	}
	if offer.Hostname != nil {
		kinds = append(kinds, &networkingv1.Ingress{})
	}
	if offer.Hostname != nil && offer.Hostname.TLSRoute != nil {
		kinds = append(kinds, &gatewayv1.TLSRoute{})
	}
	return kinds
}
