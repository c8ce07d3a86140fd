// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Endpoint says how CloudSpaces can be reached from outside the host cluster.
type Endpoint struct {
	// loadBalancer offers the endpoint type LoadBalancer. Left out, it is not offered.
	LoadBalancer *LoadBalancerEndpoint `json:"loadBalancer,omitempty"`

	// hostname offers the endpoint type Hostname. Left out, or without domains, it is not offered.
	Hostname *HostnameEndpoint `json:"hostname,omitempty"`
}

// LoadBalancerEndpoint shapes the Services of CloudSpaces with an address of their own.
type LoadBalancerEndpoint struct {
	// class is the loadBalancerClass; empty leaves it to the cloud. CloudSpaces keep the one they were made with: Kubernetes
	// does not let it change.
	Class string `json:"class,omitempty"`

	// annotations that the cloud needs on the Services. Changing them restarts the control planes that have them.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// HostnameEndpoint says which names CloudSpaces may have and what leads them there. TLS is passed through: the certificate
// is the CloudSpace's own.
type HostnameEndpoint struct {
	// domains below which names may be asked for, each one label below: below spaces.example.com, a.spaces.example.com. The
	// whole domain should be for CloudSpaces alone, and lead to the ingress or gateway.
	Domains []string `json:"domains,omitempty"`

	// reserved names below the domains, which the platform uses itself: no CloudSpace can have them.
	Reserved []string `json:"reserved,omitempty"`

	// ingress makes an Ingress for each name. It is what is used when tlsRoute is left out; only one can be set.
	Ingress *IngressEndpoint `json:"ingress,omitempty"`

	// tlsRoute makes a TLSRoute of the Gateway API for each name.
	TLSRoute *TLSRouteEndpoint `json:"tlsRoute,omitempty"`
}

// IngressEndpoint shapes the Ingresses of CloudSpaces.
type IngressEndpoint struct {
	// className is the ingressClassName; empty means the host cluster's default IngressClass.
	ClassName string `json:"className,omitempty"`

	// annotations that make the ingress controller pass TLS through. Default: those of ingress-nginx, whose controller must run
	// with --enable-ssl-passthrough.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// TLSRouteEndpoint shapes the TLSRoutes of CloudSpaces, of gateway.networking.k8s.io/v1.
type TLSRouteEndpoint struct {
	// parentRefs are the Gateways, with listeners of TLS mode Passthrough that take routes from the host namespaces.
	ParentRefs []ParentReference `json:"parentRefs"`
}

// ParentReference names a Gateway.
type ParentReference struct {
	// namespace of the Gateway.
	Namespace string `json:"namespace"`

	// name of the Gateway.
	Name string `json:"name"`

	// sectionName is the listener's name; empty means all that fit.
	SectionName string `json:"sectionName,omitempty"`
}
