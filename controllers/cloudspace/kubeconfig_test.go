// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"runtime"
	"strings"
	"testing"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/internal/names"
)

var expires = time.Date(2031, 1, 2, 12, 0, 0, 0, time.UTC)

// identity is a certificate with its key, in PEM.
type identity struct{ certificate, key []byte }

func newIdentity(tb testing.TB) identity {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes-super-admin"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: expires.Add(-time.Hour), NotAfter: expires,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		tb.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return identity{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
}

// written is a kubeconfig as a vCluster writes it.
func written(n names.CloudSpace, ca, user identity) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "my-vcluster"
	config.Contexts["my-vcluster"] = &clientcmdapi.Context{Cluster: "my-vcluster", AuthInfo: "my-vcluster"}
	config.Clusters["my-vcluster"] = &clientcmdapi.Cluster{Server: n.Endpoint(), CertificateAuthorityData: ca.certificate}
	config.AuthInfos["my-vcluster"] = &clientcmdapi.AuthInfo{ClientCertificateData: user.certificate, ClientKeyData: user.key}
	return config
}

func TestAKubeconfigIsRebuiltFromItsCertificates(t *testing.T) {
	ca, user := newIdentity(t), newIdentity(t)
	names := grantedScope(testCloudSpace("staging")).names
	untrusted, err := clientcmd.Write(*written(names, ca, user))
	if err != nil {
		t.Fatal(err)
	}
	got, err := rebuildKubeconfig(untrusted, names, names.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	if want := expected(t, ca, user); !bytes.Equal(got.text, want) {
		t.Errorf("got\n%s\nwant\n%s", got.text, want)
	}
	if !got.expires.Equal(expires) {
		t.Errorf("expires %v, want %v", got.expires, expires)
	}
}

// A vCluster writes nothing of this: who did is not trusted with the rest either.
func TestAKubeconfigWithMoreInItIsRefused(t *testing.T) {
	ca, user, other := newIdentity(t), newIdentity(t), newIdentity(t)
	names := grantedScope(testCloudSpace("staging")).names
	tests := map[string]func(*clientcmdapi.Config){
		"with an exec plugin": func(c *clientcmdapi.Config) {
			c.AuthInfos["my-vcluster"].Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "/bin/evil", InteractiveMode: "Never"}
		},
		"with an auth provider": func(c *clientcmdapi.Config) {
			c.AuthInfos["my-vcluster"].AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "evil"}
		},
		"with a token in a file":       func(c *clientcmdapi.Config) { c.AuthInfos["my-vcluster"].TokenFile = "/var/run/secrets/evil" },
		"with a certificate in a file": func(c *clientcmdapi.Config) { c.AuthInfos["my-vcluster"].ClientCertificate = "/etc/evil.crt" },
		"with a key in a file":         func(c *clientcmdapi.Config) { c.AuthInfos["my-vcluster"].ClientKey = "/etc/evil.key" },
		"with an authority in a file":  func(c *clientcmdapi.Config) { c.Clusters["my-vcluster"].CertificateAuthority = "/etc/evil-ca.crt" },
		"with a token":                 func(c *clientcmdapi.Config) { c.AuthInfos["my-vcluster"].Token = "evil-token" },
		"with a name and a password": func(c *clientcmdapi.Config) {
			c.AuthInfos["my-vcluster"].Username, c.AuthInfos["my-vcluster"].Password = "evil", "evil"
		},
		"for another name of its server": func(c *clientcmdapi.Config) { c.Clusters["my-vcluster"].TLSServerName = "evil.example.com" },
		"with an extension": func(c *clientcmdapi.Config) {
			c.Extensions["evil"] = &apiruntime.Unknown{Raw: []byte(`{"run":"evil"}`)}
		},
		"with an extension of its cluster": func(c *clientcmdapi.Config) {
			c.Clusters["my-vcluster"].Extensions = map[string]apiruntime.Object{"client.authentication.k8s.io/exec": &apiruntime.Unknown{Raw: []byte(`{"run":"evil"}`)}}
		},
		"that impersonates": func(c *clientcmdapi.Config) {
			c.AuthInfos["my-vcluster"].Impersonate = "evil-user"
			c.AuthInfos["my-vcluster"].ImpersonateGroups = []string{"evil-group"}
		},
		"for another server": func(c *clientcmdapi.Config) {
			c.Clusters["my-vcluster"].Server = "https://evil.example.com"
		},
		"that does not check certificates": func(c *clientcmdapi.Config) {
			c.Clusters["my-vcluster"].InsecureSkipTLSVerify = true
		},
		"through a proxy": func(c *clientcmdapi.Config) {
			c.Clusters["my-vcluster"].ProxyURL = "http://evil.example.com:3128"
		},
		"with a second cluster, user and context": func(c *clientcmdapi.Config) {
			c.Clusters["evil"] = &clientcmdapi.Cluster{Server: "https://evil.example.com", CertificateAuthorityData: other.certificate}
			c.AuthInfos["evil"] = &clientcmdapi.AuthInfo{ClientCertificateData: other.certificate, ClientKeyData: other.key}
			c.Contexts["evil"] = &clientcmdapi.Context{Cluster: "evil", AuthInfo: "evil", Namespace: "evil"}
		},
		"with a namespace in its context": func(c *clientcmdapi.Config) {
			c.Contexts["my-vcluster"].Namespace = "evil"
		},
	}
	for name, alter := range tests {
		t.Run(name, func(t *testing.T) {
			config := written(names, ca, user)
			alter(config)
			untrusted, err := clientcmd.Write(*config)
			if err != nil {
				t.Fatal(err)
			}
			got, err := rebuildKubeconfig(untrusted, names, names.Endpoint())
			if err == nil || !strings.HasPrefix(err.Error(), "it has more in it than") || got != nil {
				t.Errorf("got %v, %v, want that it has more in it", got, err)
			}
		})
	}
}

// expected is spelled out in full: whatever is not in it must never appear.
func expected(t *testing.T, ca, user identity) []byte {
	t.Helper()
	base := base64.StdEncoding.EncodeToString
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "cloudspace-alice-default--staging",
"contexts": [{"name": "cloudspace-alice-default--staging", "context": {"cluster": "cloudspace-alice-default--staging", "user": "cloudspace-alice-default--staging"}}],
"clusters": [{"name": "cloudspace-alice-default--staging", "cluster": {
  "server": "https://alice-default--staging.vcluster-alice-default--staging.svc:443", "certificate-authority-data": "` + base(ca.certificate) + `"}}],
"users": [{"name": "cloudspace-alice-default--staging", "user": {
  "client-certificate-data": "` + base(user.certificate) + `", "client-key-data": "` + base(user.key) + `"}}]}`
	document, err := yaml.JSONToYAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

// The errors go into conditions that people read: none may quote what was in the Secret.
func TestAKubeconfigThatCannotBeUsedIsRefused(t *testing.T) {
	ca, user, other := newIdentity(t), newIdentity(t), newIdentity(t)
	names := grantedScope(testCloudSpace("default")).names
	alter := func(change func(*clientcmdapi.Config)) []byte {
		config := written(names, ca, user)
		change(config)
		text, err := clientcmd.Write(*config)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	good := alter(func(*clientcmdapi.Config) {})
	const more = "it has more in it than the CloudSpace's own server, a certificate authority and a client certificate"
	tests := map[string]struct {
		untrusted []byte
		want      string
	}{
		"one byte more than allowed":  {append(append([]byte{}, good...), bytes.Repeat([]byte("\n"), 64<<10-len(good)+1)...), "it is too large"},
		"nothing":                     {nil, "it has no current context"},
		"no kubeconfig":               {[]byte("evil: ["), "it is not a kubeconfig"},
		"another kind":                {[]byte(`{"apiVersion":"v1","kind":"Secret"}`), "it is not a kubeconfig"},
		"no current context":          {alter(func(c *clientcmdapi.Config) { c.CurrentContext = "" }), "it has no current context"},
		"a context that is not there": {alter(func(c *clientcmdapi.Config) { c.CurrentContext = "evil" }), "it has no current context"},
		"a context without a cluster": {alter(func(c *clientcmdapi.Config) { c.Contexts["my-vcluster"].Cluster = "evil" }), "its current context names no cluster or no user"},
		"a context without a user":    {alter(func(c *clientcmdapi.Config) { c.Contexts["my-vcluster"].AuthInfo = "evil" }), "its current context names no cluster or no user"},
		"no authority":                {alter(func(c *clientcmdapi.Config) { c.Clusters["my-vcluster"].CertificateAuthorityData = nil }), "it has no certificate authority"},
		"an authority in a file": {alter(func(c *clientcmdapi.Config) {
			c.Clusters["my-vcluster"].CertificateAuthorityData, c.Clusters["my-vcluster"].CertificateAuthority = nil, "/etc/evil"
		}), more},
		"an authority that is no PEM": {alter(func(c *clientcmdapi.Config) { c.Clusters["my-vcluster"].CertificateAuthorityData = []byte("evil") }), "its certificate authority is not a certificate"},
		"an authority that is a key":  {alter(func(c *clientcmdapi.Config) { c.Clusters["my-vcluster"].CertificateAuthorityData = ca.key }), "its certificate authority is not a certificate"},
		"an authority with a key behind": {alter(func(c *clientcmdapi.Config) {
			c.Clusters["my-vcluster"].CertificateAuthorityData = append(append([]byte{}, ca.certificate...), ca.key...)
		}), "its certificate authority is not a certificate"},
		"an authority with words behind": {alter(func(c *clientcmdapi.Config) {
			c.Clusters["my-vcluster"].CertificateAuthorityData = append(append([]byte{}, ca.certificate...), "evil"...)
		}), "its certificate authority is not a certificate"},
		"an authority that is damaged": {alter(func(c *clientcmdapi.Config) {
			c.Clusters["my-vcluster"].CertificateAuthorityData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("evil")})
		}), "its certificate authority cannot be parsed"},
		"no client certificate": {alter(func(c *clientcmdapi.Config) { c.AuthInfos["my-vcluster"].ClientCertificateData = nil }), "it has no valid client certificate and key"},
		"a client certificate in a file": {alter(func(c *clientcmdapi.Config) {
			c.AuthInfos["my-vcluster"].ClientCertificateData, c.AuthInfos["my-vcluster"].ClientCertificate = nil, "/etc/evil"
		}), more},
		"no client key":                  {alter(func(c *clientcmdapi.Config) { c.AuthInfos["my-vcluster"].ClientKeyData = nil }), "it has no valid client certificate and key"},
		"the key of another certificate": {alter(func(c *clientcmdapi.Config) { c.AuthInfos["my-vcluster"].ClientKeyData = other.key }), "it has no valid client certificate and key"},
		"a token alone":                  {alter(func(c *clientcmdapi.Config) { c.AuthInfos["my-vcluster"] = &clientcmdapi.AuthInfo{Token: "evil"} }), more},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := rebuildKubeconfig(tt.untrusted, names, "https://example.com")
			if err == nil || err.Error() != tt.want || got != nil {
				t.Errorf("got %v, %v, want the error %q and nothing else", got, err, tt.want)
			}
		})
	}
}

func TestAKubeconfigAtTheSizeLimitIsRead(t *testing.T) {
	names := grantedScope(testCloudSpace("default")).names
	text, err := clientcmd.Write(*written(names, newIdentity(t), newIdentity(t)))
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, bytes.Repeat([]byte("\n"), 64<<10-len(text))...)
	if _, err := rebuildKubeconfig(text, names, "https://example.com"); err != nil {
		t.Error(err)
	}
}

// What is written in a host namespace must not cost more than it has bytes: the operator serves all tenants.
func TestAKubeconfigOfReferencesIsNotFollowed(t *testing.T) {
	ways := map[string]string{
		"one long word over and over": `{a: &a "` + strings.Repeat("x", 30_000) + `", b: [` + strings.Repeat("*a,", 10_000) + "]}",
		"lists of lists of lists": `{a: &a [x,x,x,x,x,x,x,x], b: &b [*a,*a,*a,*a,*a,*a,*a,*a], c: &c [*b,*b,*b,*b,*b,*b,*b,*b], d: &d [*c,*c,*c,*c,*c,*c,*c,*c], ` +
			`e: &e [*d,*d,*d,*d,*d,*d,*d,*d], f: &f [*e,*e,*e,*e,*e,*e,*e,*e], g: [*f,*f,*f,*f,*f,*f,*f,*f]}`,
		"merged into one another": "a: &a {b: c}\nd: &d\n  <<: *a\ne:\n" + strings.Repeat("- {<<: *d}\n", 5_000),
	}
	for name, untrusted := range ways {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := rebuildKubeconfig([]byte(untrusted), grantedScope(testCloudSpace("default")).names, "https://example.com")
			runtime.ReadMemStats(&after)
			if err == nil || err.Error() != "it is not a kubeconfig" {
				t.Errorf("got %v, want that it is not a kubeconfig", err)
			}
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 32 {
				t.Errorf("it took %d MiB to read %d KiB", took, len(untrusted)>>10)
			}
		})
	}
}

// Text in front of a PEM block, and headers in it, are not part of a certificate, and do not get into our Secret.
func TestNothingButCertificatesIsTakenOver(t *testing.T) {
	block := &pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"Evil": "header"}, Bytes: []byte("certificate")}
	text := append([]byte("evil words\n"), pem.EncodeToMemory(block)...)
	want := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("certificate")}))
	if got := string(onlyPEM(text, "CERTIFICATE")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
