// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"strings"
	"testing"

	"k8s.io/client-go/util/cert"
)

func authority(t *testing.T, name string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := cert.EncodeCertificates(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// With any of these settings of kube-apiserver, others than its front proxy could say who a caller is.
func TestSettingsThatLetOthersPoseAsTheFrontProxyAreRefused(t *testing.T) {
	t.Parallel()
	clients, proxies := authority(t, "clients"), authority(t, "proxies")
	for name, tt := range map[string]struct {
		authority, names, clients string
		// want is in the error; empty means that they are good.
		want string
	}{
		"as kubeadm makes them":                  {proxies, `["front-proxy-client"]`, clients, ""},
		"without an authority for clients":       {proxies, `["front-proxy-client"]`, "", ""},
		"no authority":                           {"", `["front-proxy-client"]`, clients, "--requestheader-client-ca-file"},
		"no names":                               {proxies, "", clients, "--requestheader-allowed-names"},
		"an empty list of names":                 {proxies, "[]", clients, "--requestheader-allowed-names"},
		"names that cannot be read":              {proxies, "front-proxy-client", clients, "requestheader-allowed-names"},
		"one authority for both":                 {clients, `["front-proxy-client"]`, clients, "one authority"},
		"one authority of several for both":      {proxies + clients, `["front-proxy-client"]`, clients, "one authority"},
		"an authority that cannot be read":       {"x", `["front-proxy-client"]`, clients, "requestheader-client-ca-file"},
		"clients' authority that cannot be read": {proxies, `["front-proxy-client"]`, "x", "client-ca-file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := checkFrontProxy(map[string]string{
				"requestheader-client-ca-file": tt.authority, "requestheader-allowed-names": tt.names, "client-ca-file": tt.clients,
			})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}
