// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// settling is how long a new key is only published, so that every replica knows it, and every API server finds it, before a token is
// signed with it. It also bears with clocks that differ.
const settling = 2 * time.Minute

// key is one generation of what the provider keeps secret.
type key struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	// Signing is the private key of tokens, with ECDSA on P-256.
	Signing jose.JSONWebKey `json:"signing"`
	// Sealing encrypts, with AES-256-GCM, what only the provider itself reads: requests, codes and refresh tokens.
	Sealing [32]byte `json:"sealing"`
}

func newKey(now time.Time) (key, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return key{}, err
	}
	made := key{Created: now.UTC()}
	id := make([]byte, 8)
	// These never fail: the program ends before.
	_, _ = rand.Read(id)
	_, _ = rand.Read(made.Sealing[:])
	made.ID = hex.EncodeToString(id)
	made.Signing = jose.JSONWebKey{Key: private, KeyID: made.ID, Algorithm: string(jose.ES256), Use: "sig"}
	return made, nil
}

// keys are all generations, the oldest first.
type keys []key

// current is the newest key that has settled. The first one need not: nobody has keys to trust before.
func (k keys) current(now time.Time) key {
	for i := len(k) - 1; i > 0; i-- {
		if !now.Before(k[i].Created.Add(settling)) {
			return k[i]
		}
	}
	return k[0]
}

// usable are the keys that something may still need whose life is that long: all but those that were replaced before.
func (k keys) usable(now time.Time, life time.Duration) keys {
	for len(k) > 1 {
		replaced := k[1].Created.Add(settling)
		if now.Before(replaced.Add(life + settling)) {
			break
		}
		k = k[1:]
	}
	return k
}

// rotated adds a key when the newest has served its time, and drops those that nothing needs any more.
func (k keys) rotated(now time.Time, l Lifetimes) (keys, error) {
	var next keys
	next = append(next, k.usable(now, l.longest())...)
	if len(k) > 0 && now.Before(k[len(k)-1].Created.Add(l.Key)) {
		return next, nil
	}
	made, err := newKey(now)
	return append(next, made), err
}

// public is what tokens are verified with.
func (k keys) public() jose.JSONWebKeySet {
	set := jose.JSONWebKeySet{}
	for i := range k {
		set.Keys = append(set.Keys, k[i].Signing.Public())
	}
	return set
}

// crypto seals with the current key, and opens what any key sealed.
func (k keys) crypto(now time.Time) op.Crypto {
	of := func(one key) op.Crypto { return op.NewAES256GCMCrypto(one.Sealing, one.ID) }
	var open []op.Decrypter
	for i := range k {
		open = append(open, of(k[i]))
	}
	return op.NewCompositeCrypto(of(k.current(now)), open)
}
