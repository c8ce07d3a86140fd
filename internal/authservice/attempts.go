// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"

	"github.com/tantilium/cloud-runner/internal/users"
)

const (
	// After attemptsAtOnce tries in a row under one name there is one each attemptEvery, whoever makes them.
	attemptsAtOnce = 5
	attemptEvery   = 10 * time.Second
	// Comparing a password is costly on purpose: all names together have allAtOnce tries in a row, then allPerSecond.
	allAtOnce    = 20
	allPerSecond = 5
	// namesKnown bounds the memory of tries.
	namesKnown = 10000
)

// attempts bounds how fast passwords can be guessed, for names that exist and for others alike.
type attempts struct {
	mu    sync.Mutex
	names *lru.Cache
	all   *rate.Limiter
}

func newAttempts() *attempts {
	return &attempts{names: lru.New(namesKnown), all: rate.NewLimiter(allPerSecond, allAtOnce)}
}

// allow tells whether a password may be tried under the name now. A name is remembered when one is: who tries many names at once does not
// have an earlier one forgotten sooner than its tries come back.
func (a *attempts) allow(name string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	known, found := a.names.Get(name)
	limiter, _ := known.(*rate.Limiter)
	if !found {
		limiter = rate.NewLimiter(rate.Every(attemptEvery), attemptsAtOnce)
	}
	if !limiter.AllowN(now, 1) || !a.all.AllowN(now, 1) {
		return false
	}
	a.names.Add(name, limiter)
	return true
}

// spent remembers the codes that were used on this replica, while they would be taken. A second use elsewhere needs the client's own
// verifier.
type spent struct {
	mu    sync.Mutex
	codes map[string]time.Time
}

// first tells whether the code has not been used before, and uses it.
func (s *spent) first(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, used := range s.codes {
		if now.Sub(used) > codeLife {
			delete(s.codes, other)
		}
	}
	if _, again := s.codes[id]; again {
		return false
	}
	s.codes[id] = now
	return true
}

func randomID() string { return rand.Text() }

// fingerprint stands for a user's password in their session, so that another one ends it.
func fingerprint(user users.User) string {
	sum := sha256.Sum256([]byte(user.PasswordHash))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
