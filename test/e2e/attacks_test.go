//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/test/attacks"
)

// attacks does all that the view has, everywhere, as everybody: with tokens, and by impersonation, which makes callers that no token makes.
func (h *host) attacks(t *testing.T) {
	g := NewWithT(t)
	for _, tenant := range attacks.Tenants() {
		h.createIdleTenant(t, tenant)
	}
	for _, cloudSpace := range attacks.CloudSpaces() {
		g.Expect(h.Create(t.Context(), cloudSpace)).To(Succeed())
	}
	for _, account := range attacks.ServiceAccounts() {
		g.Expect(client.IgnoreAlreadyExists(h.Create(t.Context(), account))).To(Succeed())
	}
	for _, cloudSpace := range attacks.CloudSpaces() {
		h.awaitSuspended(t, client.ObjectKeyFromObject(cloudSpace))
	}
	for name, become := range map[string]attacks.Become{"with tokens": h.byTokens(h.provider(t)), "by impersonation": attacks.ByImpersonation(h.config)} {
		t.Run(name, func(t *testing.T) { attacks.Run(t, h.config, become) })
		t.Run("subresources "+name, func(t *testing.T) { attacks.Subresources(t, h.config, become) })
	}
	h.removeTenants(t, attacks.Own, attacks.Foreign)
}

// byTokens comes with what kube-apiserver knows callers by: a token of the provider's or of a ServiceAccount, or with nothing.
func (h *host) byTokens(provider provider) attacks.Become {
	return func(t *testing.T, caller attacks.Caller) (*rest.Config, bool) {
		t.Helper()
		switch account := caller.ServiceAccount; {
		case account != nil:
			request, err := h.CoreV1().ServiceAccounts(account.Namespace).CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			return h.with(request.Status.Token), true
		case caller.Claims != nil:
			return h.with(provider.token(t, caller.Claims)), !caller.Refused
		default:
			return h.with(""), true
		}
	}
}
