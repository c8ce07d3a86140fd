// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"log/slog"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// annotationTLS is what makes ingress-nginx pass TLS through.
const annotationTLS = "nginx.ingress.kubernetes.io/ssl-passthrough"

// passed finds the Service to which an Ingress passes TLS of a server name, as ingress-nginx does: of several Ingresses with one
// host the oldest counts, and the path is not looked at.
func (p *probe) passed(ctx context.Context, serverName string) (namespace, name string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if serverName == "" {
		return "", "", false
	}
	list, err := p.client.NetworkingV1().Ingresses("").List(ctx, metav1.ListOptions{})
	if err != nil {
		slog.Warn("no Ingress can be read", "serverName", serverName, "error", err)
		return "", "", false
	}
	return findPassed(list.Items, serverName)
}

func findPassed(ingresses []networkingv1.Ingress, serverName string) (namespace, name string, ok bool) {
	slices.SortStableFunc(ingresses, func(a, b networkingv1.Ingress) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	for _, ingress := range ingresses {
		if ingress.Annotations[annotationTLS] != "true" {
			continue
		}
		for _, rule := range ingress.Spec.Rules {
			if rule.Host != serverName || rule.HTTP == nil || len(rule.HTTP.Paths) == 0 || rule.HTTP.Paths[0].Backend.Service == nil {
				continue
			}
			return ingress.Namespace, rule.HTTP.Paths[0].Backend.Service.Name, true
		}
	}
	return "", "", false
}
