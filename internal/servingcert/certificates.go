// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servingcert makes and renews the certificate that an aggregated API server serves with, and tells kube-apiserver by which
// authority it is signed. All replicas share them in one Secret. An authority is known to kube-apiserver before anything is served that it
// signed, and stays known until it ends: no request fails while certificates change.
package servingcert

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// How long certificates are good for, and how long before their end they are renewed.
const (
	authorityLasts  = 5 * 365 * 24 * time.Hour
	authorityRenews = 365 * 24 * time.Hour
	leafLasts       = 90 * 24 * time.Hour
	leafRenews      = 30 * 24 * time.Hour
	// settles is how long an authority is known before anything is served that it signed.
	settles = 10 * time.Minute
	// ahead is how much a clock may be ahead of another.
	ahead = time.Hour
)

// Keys of the Secret. The authorities are one text, the newest last; the key is the newest one's.
const (
	keyAuthorities  = "ca.crt"
	keyAuthorityKey = "ca.key"
	keyLeaf         = "tls.crt"
	keyLeafKey      = "tls.key"
)

// Next gives what the Secret should hold at a time, and whether that is not what it holds. Names are those that the server is known by.
func Next(data map[string][]byte, names []string, now time.Time) (next map[string][]byte, changed bool, err error) {
	authorities, key := readAuthorities(data, now)
	renewed := false
	if key == nil || newest(authorities).NotAfter.Sub(now) < authorityRenews {
		authority, authorityKey, err := newAuthority(now)
		if err != nil {
			return nil, false, err
		}
		authorities, key, renewed = append(authorities, authority), authorityKey, true
	}
	leaf := readLeaf(data, authorities, names, now)
	settled := now.Sub(newest(authorities).NotBefore) >= ahead+settles
	if leaf != nil && (leaf.NotAfter.Sub(now) >= leafRenews || !settled) {
		if !renewed {
			return data, false, nil
		}
		next, err := encode(authorities, key)
		next[keyLeaf], next[keyLeafKey] = data[keyLeaf], data[keyLeafKey]
		return next, true, err
	}
	next, err = encode(authorities, key)
	if err != nil {
		return nil, false, err
	}
	next[keyLeaf], next[keyLeafKey], err = newLeaf(newest(authorities), key, names, now)
	return next, true, err
}

func newest(authorities []*x509.Certificate) *x509.Certificate {
	return authorities[len(authorities)-1]
}

// readAuthorities gives those that have not ended, and the key of the newest, if it is that one's.
func readAuthorities(data map[string][]byte, now time.Time) ([]*x509.Certificate, crypto.Signer) {
	all, err := cert.ParseCertsPEM(data[keyAuthorities])
	if err != nil {
		return nil, nil
	}
	var authorities []*x509.Certificate
	for _, each := range all {
		if each.IsCA && now.Before(each.NotAfter) {
			authorities = append(authorities, each)
		}
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(data[keyAuthorityKey])
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || len(authorities) == 0 || !key.PublicKey.Equal(newest(authorities).PublicKey) {
		return authorities, nil
	}
	return authorities, key
}

// readLeaf gives the certificate to serve with, if it is good.
func readLeaf(data map[string][]byte, authorities []*x509.Certificate, names []string, now time.Time) *x509.Certificate {
	all, err := cert.ParseCertsPEM(data[keyLeaf])
	if err != nil {
		return nil
	}
	if _, err := tls.X509KeyPair(data[keyLeaf], data[keyLeafKey]); err != nil {
		return nil
	}
	roots := x509.NewCertPool()
	for _, each := range authorities {
		roots.AddCert(each)
	}
	for _, name := range names {
		if _, err := all[0].Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
			return nil
		}
	}
	return all[0]
}

func newAuthority(now time.Time) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template, err := newTemplate("kubeopera-api-authority", now, authorityLasts)
	if err != nil {
		return nil, nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	certificate, err := sign(template, template, key.Public(), key)
	return certificate, key, err
}

func newLeaf(authority *x509.Certificate, signer crypto.Signer, names []string, now time.Time) (leaf, leafKey []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if len(names) == 0 {
		return nil, nil, errors.New("a certificate needs a name")
	}
	template, err := newTemplate(names[0], now, leafLasts)
	if err != nil {
		return nil, nil, err
	}
	template.DNSNames = names
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	certificate, err := sign(template, authority, key.Public(), signer)
	if err != nil {
		return nil, nil, err
	}
	if leaf, err = cert.EncodeCertificates(certificate); err != nil {
		return nil, nil, err
	}
	leafKey, err = keyutil.MarshalPrivateKeyToPEM(key)
	return leaf, leafKey, err
}

func newTemplate(name string, now time.Time, lasts time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-ahead), NotAfter: now.Add(lasts),
	}, err
}

// serialBits is how random a serial number is, as public authorities must have them.
const serialBits = 127

func sign(template, parent *x509.Certificate, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func encode(authorities []*x509.Certificate, key crypto.Signer) (map[string][]byte, error) {
	bundle, err := cert.EncodeCertificates(authorities...)
	if err != nil {
		return nil, err
	}
	keyText, err := keyutil.MarshalPrivateKeyToPEM(key)
	return map[string][]byte{keyAuthorities: bundle, keyAuthorityKey: keyText}, err
}
