// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

var site = Site{
	Node: "node-1", NodeAddress: net.IPv4(192, 168, 255, 2), ServiceAddress: net.IPv4(10, 96, 0, 1),
	AuthService: net.IPv4(10, 96, 0, 20), AuthServiceHost: "auth-service.kubeopera-core.svc",
}

func ensure(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "pki")
	if err := Ensure(folder, "https://192.168.255.2:6443", site); err != nil {
		t.Fatal(err)
	}
	return folder
}

func pool(t *testing.T, file string) *x509.CertPool {
	t.Helper()
	roots, err := cert.NewPool(file)
	if err != nil {
		t.Fatal(err)
	}
	return roots
}

func TestServerCertificatesNameTheirHosts(t *testing.T) {
	folder := ensure(t)
	for _, test := range []struct{ file, host string }{
		{"apiserver", "127.0.0.1"},
		{"apiserver", "10.96.0.1"},
		{"apiserver", "192.168.255.2"},
		{"apiserver", "kubernetes.default.svc"},
		{"auth-service", "10.96.0.20"},
		{"auth-service", "auth-service.kubeopera-core.svc"},
		{"kubelet", "192.168.255.2"},
		{"kubelet", "node-1"},
	} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, test.file+".crt"), filepath.Join(folder, test.file+".key"))
		if err != nil {
			t.Fatal(err)
		}
		options := x509.VerifyOptions{
			DNSName: test.host, Roots: pool(t, filepath.Join(folder, "ca.crt")), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		if _, err := pair.Leaf.Verify(options); err != nil {
			t.Errorf("%s does not prove to be %s: %v", test.file, test.host, err)
		}
	}
}

func TestKubeconfigsIdentifyTheirClients(t *testing.T) {
	folder := ensure(t)
	for file, want := range map[string]string{
		Admin:             "hostcluster-admin",
		ControllerManager: "system:kube-controller-manager",
		Kubelet:           "system:node:node-1",
	} {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(folder, file+".kubeconfig"))
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != "https://192.168.255.2:6443" {
			t.Errorf("%s reaches the API server at %s", file, config.Host)
		}
		parsed, err := cert.ParseCertsPEM(config.CertData)
		if err != nil || parsed[0].Subject.CommonName != want {
			t.Errorf("%s is %v, %v, want %s", file, parsed, err, want)
		}
	}
}

func TestFrontProxyHasAnAuthorityOfItsOwn(t *testing.T) {
	folder := ensure(t)
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, "front-proxy.crt"), filepath.Join(folder, "front-proxy.key"))
	if err != nil {
		t.Fatal(err)
	}
	for authority, want := range map[string]bool{"front-proxy-ca.crt": true, "ca.crt": false} {
		options := x509.VerifyOptions{Roots: pool(t, filepath.Join(folder, authority)), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
		if _, err := pair.Leaf.Verify(options); (err == nil) != want {
			t.Errorf("verified by %s: %v, want %t", authority, err, want)
		}
	}
}

func TestCertificatesOfACompleteFolderStay(t *testing.T) {
	folder := ensure(t)
	before := read(t, filepath.Join(folder, "ca.crt"))
	if err := Ensure(folder, "https://192.168.255.2:6443", site); err != nil {
		t.Fatal(err)
	}
	if read(t, filepath.Join(folder, "ca.crt")) != before {
		t.Error("the authority of a complete folder was replaced")
	}
}

func TestAHalfDoneFolderIsMadeAnew(t *testing.T) {
	folder := ensure(t)
	before := read(t, filepath.Join(folder, "ca.crt"))
	if err := os.Remove(filepath.Join(folder, Complete)); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(folder, "https://192.168.255.2:6443", site); err != nil {
		t.Fatal(err)
	}
	if read(t, filepath.Join(folder, "ca.crt")) == before {
		t.Error("the authority of a half-done folder was kept")
	}
}

func TestRedirectChangesTheServerOnly(t *testing.T) {
	folder := ensure(t)
	from, to := filepath.Join(folder, Admin+".kubeconfig"), filepath.Join(folder, "outside")
	if err := Redirect(from, to, "https://127.0.0.1:20001"); err != nil {
		t.Fatal(err)
	}
	before, err := clientcmd.BuildConfigFromFlags("", from)
	if err != nil {
		t.Fatal(err)
	}
	after, err := clientcmd.BuildConfigFromFlags("", to)
	if err != nil {
		t.Fatal(err)
	}
	if after.Host != "https://127.0.0.1:20001" {
		t.Errorf("server is %s", after.Host)
	}
	if !bytes.Equal(after.CAData, before.CAData) || !bytes.Equal(after.KeyData, before.KeyData) {
		t.Error("authority or key changed")
	}
	info, err := os.Stat(to)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, %v, want 0600", info.Mode(), err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
