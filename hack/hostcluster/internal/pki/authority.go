// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificates, keys and kubeconfigs of a host cluster.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is the life of every certificate. A local cluster is made anew long before.
const validity = 10 * 365 * 24 * time.Hour

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// subject is what one certificate says of its holder.
type subject struct {
	name      string
	groups    []string
	hosts     []string
	addresses []net.IP
	usage     x509.ExtKeyUsage
}

func newAuthority(name string) (*authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	if err != nil {
		return nil, fmt.Errorf("make authority %s: %w", name, err)
	}
	return &authority{certificate: certificate, key: key}, nil
}

// issue returns a certificate and its key for s, both PEM.
func (a *authority) issue(s subject) (certificate, key []byte, err error) {
	private, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(math.MaxInt64))
	if err != nil {
		return nil, nil, fmt.Errorf("make serial number: %w", err)
	}
	template := x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: s.name, Organization: s.groups},
		DNSNames:     s.hosts,
		IPAddresses:  s.addresses,
		NotBefore:    a.certificate.NotBefore,
		NotAfter:     time.Now().Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{s.usage},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign certificate of %s: %w", s.name, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("read back certificate of %s: %w", s.name, err)
	}
	encoded, err := cert.EncodeCertificates(parsed)
	if err != nil {
		return nil, nil, fmt.Errorf("encode certificate of %s: %w", s.name, err)
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	if err != nil {
		return nil, nil, fmt.Errorf("encode key of %s: %w", s.name, err)
	}
	return encoded, key, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}
