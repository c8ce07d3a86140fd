// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"
)

// issuer stands in for an OpenID provider: kube-apiserver asks it for its keys, and it signs what a test likes.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
}

const keyID = "first"

func startIssuer() (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: keyID, Algorithm: "ES256", Use: "sig"}}})
	})
	i.Server = httptest.NewTLSServer(mux)
	return i, nil
}

// configured writes config/authn for this issuer, and for the platform's own provider, into a folder, and gives the file.
func (i *issuer) configured(folder string, own *ownProvider) (string, error) {
	text, err := os.ReadFile(repository("config", "authn", "authentication.yaml"))
	if err != nil {
		return "", err
	}
	config := &apiserverv1.AuthenticationConfiguration{}
	if err := yaml.UnmarshalStrict(text, config); err != nil {
		return "", err
	}
	config.JWT = append(config.JWT, *config.JWT[0].DeepCopy())
	config.JWT[1].Issuer.URL, config.JWT[1].Issuer.CertificateAuthority = own.Issuer, own.Authority
	config.JWT[0].Issuer.URL = i.URL
	config.JWT[0].Issuer.CertificateAuthority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
	if text, err = yaml.Marshal(config); err != nil {
		return "", err
	}
	file := filepath.Join(folder, "authentication.yaml")
	return file, os.WriteFile(file, text, 0o600)
}

type claims map[string]any

// customer has the claims of a customer's token; a value of nil takes one away.
func (i *issuer) customer(others claims) claims {
	all := claims{
		"iss": i.URL, "aud": "kubeopera", "exp": time.Now().Add(time.Hour).Unix(),
		"sub": "alice", "user_type": "customer", "tenant_id": "alice-default",
	}
	maps.Copy(all, others)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return all
}

// signed is a token as the issuer would give it.
func (i *issuer) signed(t *testing.T, all claims) string {
	t.Helper()
	return signedWith(t, jose.ES256, jose.JSONWebKey{Key: i.key, KeyID: keyID}, all)
}

func signedWith(t *testing.T, algorithm jose.SignatureAlgorithm, key any, all claims) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(map[string]any(all)).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// otherKey is one that the issuer does not have.
func otherKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
