//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// provider signs with the key of the platform's own, whatever it is given to sign.
type provider struct{ jose.Signer }

func (h *host) provider(t *testing.T) provider {
	t.Helper()
	g := NewWithT(t)
	var keys []struct{ Signing jose.JSONWebKey }
	g.Expect(json.Unmarshal(h.providersKeys(t), &keys)).To(Succeed())
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: keys[0].Signing}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	return provider{signer}
}

// providersKeys are its secrets, as they are stored.
func (h *host) providersKeys(t *testing.T) []byte {
	t.Helper()
	var secret corev1.Secret
	NewWithT(t).Expect(h.Get(t.Context(), client.ObjectKey{Namespace: "kubeopera-core", Name: "auth-service-keys"}, &secret)).To(Succeed())
	return secret.Data["keys.json"]
}

// token has the claims that all have, and those given. What is given as nil is left out.
func (p provider) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": issuer, "aud": "kubeopera", "exp": time.Now().Add(10 * time.Minute).Unix()}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	token, err := jwt.Signed(p).Claims(all).Serialize()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return token
}

// with is how to come to the host cluster with a token alone; with none, when it is empty.
func (h *host) with(token string) *rest.Config {
	config := rest.AnonymousClientConfig(h.config)
	config.BearerToken = token
	return config
}
