// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"errors"
	"maps"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
)

// routeName is the Ingress or TLSRoute in a host namespace that leads to the CloudSpace.
const routeName = "cloudspace"

// observeRoutes reads the Ingress, and the TLSRoute if that is what the platform uses: its kind may not be there otherwise.
func (r *Reconciler) observeRoutes(ctx context.Context, s *scope) error {
	o, host := &s.observed, s.names.HostNamespace()
	err := apply.Read(ctx, r.Client, &o.ingress, host, routeName)
	if r.Platform.Endpoint.Hostname.TLSRoute != nil {
		err = errors.Join(err, apply.Read(ctx, r.Client, &o.tlsRoute, host, routeName))
	}
	return err
}

// ensureRoute makes what leads from the hostname to the CloudSpace's Service, in the way that the platform uses, and not in another.
func (r *Reconciler) ensureRoute(ctx context.Context, s *scope) (err error) {
	o, offer := &s.observed, r.Platform.Endpoint.Hostname
	if offer.TLSRoute == nil {
		o.ingress, err = apply.Ensure(ctx, r.Applier, s.owner, o.ingress, desiredIngress(s, offer.Ingress))
		return err
	}
	if err := removeRoute(ctx, r, s, o.ingress); err != nil {
		return err
	}
	o.tlsRoute, err = apply.Ensure(ctx, r.Applier, s.owner, o.tlsRoute, desiredTLSRoute(s, offer.TLSRoute))
	return err
}

// removeRoutes ends what leads from the hostname to the CloudSpace.
func (r *Reconciler) removeRoutes(ctx context.Context, s *scope) error {
	return errors.Join(removeRoute(ctx, r, s, s.observed.ingress), removeRoute(ctx, r, s, s.observed.tlsRoute))
}

func removeRoute[O any, T interface {
	*O
	client.Object
}](ctx context.Context, r *Reconciler, s *scope, cached T) error {
	if cached == nil || !s.owner.Owns(cached) {
		return nil
	}
	return r.Remove(ctx, s.owner, cached)
}

// desiredIngress leads a hostname to the CloudSpace's Service. That TLS is passed through is said in annotations alone.
func desiredIngress(s *scope, config *configv1alpha1.IngressEndpoint) *networkingv1.Ingress {
	pathType := networkingv1.PathTypeImplementationSpecific
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: s.names.HostName(), Port: networkingv1.ServiceBackendPort{Number: 443},
	}}
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: routeName, Namespace: s.names.HostNamespace(), Annotations: maps.Clone(config.Annotations)},
		Spec: networkingv1.IngressSpec{
			IngressClassName: ingressClass(s.observed.ingress, config),
			Rules: []networkingv1.IngressRule{{
				Host: s.object.Spec.Endpoint.Hostname,
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
					Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &pathType, Backend: backend}},
				}},
			}},
		},
	}
}

// ingressClass leaves the class that Kubernetes has put in when an Ingress was made without one.
func ingressClass(cached *networkingv1.Ingress, config *configv1alpha1.IngressEndpoint) *string {
	switch {
	case config.ClassName != "":
		return &config.ClassName
	case cached != nil:
		return cached.Spec.IngressClassName
	default:
		return nil
	}
}

// desiredTLSRoute leads a hostname to the CloudSpace's Service, with the defaults filled in as Kubernetes would.
func desiredTLSRoute(s *scope, config *configv1alpha1.TLSRouteEndpoint) *gatewayv1.TLSRoute {
	var (
		gatewayGroup, gatewayKind = gatewayv1.Group(gatewayv1.GroupName), gatewayv1.Kind("Gateway")
		serviceGroup, serviceKind = gatewayv1.Group(""), gatewayv1.Kind("Service")
		port, weight              = gatewayv1.PortNumber(443), int32(1)
		parents                   []gatewayv1.ParentReference
	)
	for _, ref := range config.ParentRefs {
		namespace := gatewayv1.Namespace(ref.Namespace)
		parent := gatewayv1.ParentReference{Group: &gatewayGroup, Kind: &gatewayKind, Namespace: &namespace, Name: gatewayv1.ObjectName(ref.Name)}
		if ref.SectionName != "" {
			section := gatewayv1.SectionName(ref.SectionName)
			parent.SectionName = &section
		}
		parents = append(parents, parent)
	}
	return &gatewayv1.TLSRoute{
		ObjectMeta: metav1.ObjectMeta{Name: routeName, Namespace: s.names.HostNamespace()},
		Spec: gatewayv1.TLSRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: parents},
			Hostnames:       []gatewayv1.Hostname{gatewayv1.Hostname(s.object.Spec.Endpoint.Hostname)},
			Rules: []gatewayv1.TLSRouteRule{{BackendRefs: []gatewayv1.BackendRef{{
				BackendObjectReference: gatewayv1.BackendObjectReference{
					Group: &serviceGroup, Kind: &serviceKind, Name: gatewayv1.ObjectName(s.names.HostName()), Port: &port,
				},
				Weight: &weight,
			}}}},
		},
	}
}
