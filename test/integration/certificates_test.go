// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// serverOf is where a vCluster leads to that is told to export its Service.
func serverOf(hostName string) string {
	return "https://" + hostName + ".vcluster-" + hostName + ".svc:443"
}

// newKubeconfig is what a vCluster writes: a certificate authority and a client certificate of its own, and the endpoint that
// it was told to export. Each call makes other certificates, as each vCluster and each rotation does.
func newKubeconfig(server string, expires time.Time) ([]byte, error) {
	caKey, caCert, caPEM, err := issue(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil, expires)
	if err != nil {
		return nil, err
	}
	key, _, certPEM, err := issue(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kubernetes-super-admin", Organization: []string{"system:masters"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, caCert, caKey, expires)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "my-vcluster"
	config.Contexts["my-vcluster"] = &clientcmdapi.Context{Cluster: "my-vcluster", AuthInfo: "my-vcluster"}
	config.Clusters["my-vcluster"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: caPEM}
	config.AuthInfos["my-vcluster"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: certPEM, ClientKeyData: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
	return clientcmd.Write(*config)
}

// issue signs a certificate; without a parent it signs itself.
func issue(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey, expires time.Time) (*ecdsa.PrivateKey, *x509.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	template.NotBefore, template.NotAfter = expires.Add(-365*24*time.Hour), expires
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return nil, nil, nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return key, certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}
