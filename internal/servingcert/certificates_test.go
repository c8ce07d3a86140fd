// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
)

var (
	begin = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	names = []string{"kubeopera-api.kubeopera-core.svc"}
)

// after gives what the Secret holds after a look at a time.
func after(t *testing.T, data map[string][]byte, now time.Time) (next map[string][]byte, changed bool) {
	t.Helper()
	next, changed, err := Next(data, names, now)
	if err != nil {
		t.Fatal(err)
	}
	trusted(t, next, next[keyAuthorities], now)
	if _, err := tls.X509KeyPair(next[keyLeaf], next[keyLeafKey]); err != nil {
		t.Fatalf("certificate and key do not go together: %v", err)
	}
	return next, changed
}

// trusted checks that what is served is good for who knows some authorities.
func trusted(t *testing.T, data map[string][]byte, authorities []byte, now time.Time) {
	t.Helper()
	leaf, err := cert.ParseCertsPEM(data[keyLeaf])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities)
	if _, err := leaf[0].Verify(x509.VerifyOptions{DNSName: names[0], Roots: roots, CurrentTime: now}); err != nil {
		t.Errorf("what is served is not trusted: %v", err)
	}
}

func TestWhenCertificatesAreRenewed(t *testing.T) {
	t.Parallel()
	first, changed := after(t, nil, begin)
	if !changed {
		t.Fatal("nothing was made")
	}
	for name, tt := range map[string]struct {
		at              time.Duration
		alter           func(map[string][]byte)
		leaf, authority bool
	}{
		"a moment later":                       {at: time.Minute},
		"before it is due":                     {at: 59 * 24 * time.Hour},
		"30 days before the end":               {at: 61 * 24 * time.Hour, leaf: true},
		"after the end":                        {at: 100 * 24 * time.Hour, leaf: true},
		"on a clock that went back":            {at: -30 * time.Minute},
		"a year before the authority's end":    {at: authorityLasts - authorityRenews + time.Hour, leaf: true, authority: true},
		"the certificate was removed":          {alter: func(d map[string][]byte) { delete(d, keyLeaf) }, leaf: true},
		"the certificate's key was removed":    {alter: func(d map[string][]byte) { delete(d, keyLeafKey) }, leaf: true},
		"the certificate's key is of another":  {alter: func(d map[string][]byte) { d[keyLeafKey] = d[keyAuthorityKey] }, leaf: true},
		"the certificate is broken":            {alter: func(d map[string][]byte) { d[keyLeaf] = []byte("x") }, leaf: true},
		"the authority was removed":            {alter: func(d map[string][]byte) { delete(d, keyAuthorities) }, leaf: true, authority: true},
		"the authority's key was removed":      {alter: func(d map[string][]byte) { delete(d, keyAuthorityKey) }, authority: true},
		"the authority's key is of another":    {alter: func(d map[string][]byte) { d[keyAuthorityKey] = d[keyLeafKey] }, authority: true},
		"the authority is the certificate":     {alter: func(d map[string][]byte) { d[keyAuthorities] = d[keyLeaf] }, leaf: true, authority: true},
		"the certificate is another's":         {alter: func(d map[string][]byte) { d[keyLeaf] = d[keyAuthorities] }, leaf: true},
		"everything in it was removed by hand": {alter: func(d map[string][]byte) { clear(d) }, leaf: true, authority: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := maps.Clone(first)
			if tt.alter != nil {
				tt.alter(data)
			}
			next, _ := after(t, data, begin.Add(tt.at))
			if renewed := !bytes.Equal(next[keyLeaf], first[keyLeaf]); renewed != tt.leaf {
				t.Errorf("a new certificate: %v", renewed)
			}
			if renewed := !bytes.Equal(next[keyAuthorityKey], first[keyAuthorityKey]); renewed != tt.authority {
				t.Errorf("a new authority: %v", renewed)
			}
			if _, changed := after(t, next, begin.Add(tt.at)); changed {
				t.Error("a second look changes something")
			}
		})
	}
}

// Over ten years, with a look every day, what is served is trusted by who knows the authorities of the look before.
func TestNoRequestFailsWhileCertificatesChange(t *testing.T) {
	t.Parallel()
	data, _ := after(t, nil, begin)
	leaves, authorities := 0, 0
	for now := begin; now.Before(begin.Add(10 * 365 * 24 * time.Hour)); now = now.Add(24 * time.Hour) {
		next, changed := after(t, data, now)
		trusted(t, next, data[keyAuthorities], now)
		if !bytes.Equal(next[keyLeaf], data[keyLeaf]) {
			leaves++
		}
		if !bytes.Equal(next[keyAuthorityKey], data[keyAuthorityKey]) {
			authorities++
		}
		if !changed && t.Failed() {
			t.FailNow()
		}
		data = next
	}
	if leaves < 50 || authorities != 2 {
		t.Errorf("%d certificates, %d authorities", leaves, authorities)
	}
}
