// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func ingress(namespace string, age time.Duration, annotation, host, service string) networkingv1.Ingress {
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service}}
	return networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, CreationTimestamp: metav1.NewTime(time.Unix(0, 0).Add(-age)), Annotations: map[string]string{annotationTLS: annotation},
		},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", Backend: backend}}},
		}}}},
	}
}

func TestTLSIsPassedAsAnIngressSays(t *testing.T) {
	all := []networkingv1.Ingress{
		ingress("young", time.Minute, "true", "a.example.com", "young"),
		ingress("old", time.Hour, "true", "a.example.com", "old"),
		ingress("oldest", 2*time.Hour, "false", "a.example.com", "oldest"),
		ingress("other", time.Hour, "true", "b.example.com", "other"),
		{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationTLS: "true"}}, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: "c.example.com"}}}},
	}
	for serverName, want := range map[string][2]string{
		"a.example.com": {"old", "old"}, "b.example.com": {"other", "other"}, "c.example.com": {}, "d.example.com": {},
	} {
		namespace, name, ok := findPassed(all, serverName)
		if namespace != want[0] || name != want[1] || ok != (want[0] != "") {
			t.Errorf("%s is passed to %s/%s, %v, want %v", serverName, namespace, name, ok, want)
		}
	}
}
