// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var (
	began     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	lifetimes = Lifetimes{Token: 10 * time.Minute, Session: 12 * time.Hour, Key: 24 * time.Hour}
)

func ids(k keys) []string {
	var all []string
	for i := range k {
		all = append(all, k[i].ID)
	}
	return all
}

// rotate does what a provider does every now and then.
func rotate(t *testing.T, k keys, now time.Time) keys {
	t.Helper()
	next, err := k.rotated(now, lifetimes)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return next
}

// Three days of a provider, a minute at a time.
func TestEveryTokenAndSessionOutlivesItsKey(t *testing.T) {
	g := NewWithT(t)
	var k, before keys
	signed, sealed := map[string]time.Time{}, map[string]string{}
	used := map[string]bool{}
	for now := began; now.Before(began.Add(72 * time.Hour)); now = now.Add(time.Minute) {
		k, before = rotate(t, k, now), k
		current := k.current(now).ID
		used[current] = true
		// Another replica, which has not read the keys since, publishes the key too.
		if len(before) > 0 {
			g.Expect(ids(before)).To(ContainElement(current), "at %s", now)
		}
		signed[current] = now.Add(lifetimes.Token)
		published := ids(k.usable(now, lifetimes.Token))
		for id, expires := range signed {
			if now.Before(expires) {
				g.Expect(published).To(ContainElement(id), "a token of key %s at %s", id, now)
			}
		}
		text, err := k.crypto(now).Encrypt("session")
		g.Expect(err).NotTo(HaveOccurred())
		sealed[text] = now.Add(lifetimes.Session).Format(time.RFC3339)
		if now.Minute() == 0 {
			for text, expires := range sealed {
				if now.Format(time.RFC3339) < expires {
					_, err := k.crypto(now).Decrypt(text)
					g.Expect(err).NotTo(HaveOccurred(), "at %s", now)
				} else {
					delete(sealed, text)
				}
			}
		}
		g.Expect(len(published)).To(BeNumerically("<=", 2))
		g.Expect(len(k)).To(BeNumerically("<=", 3))
	}
	g.Expect(used).To(HaveLen(3))
}

func TestAKeyThatNothingNeedsIsNotPublished(t *testing.T) {
	g := NewWithT(t)
	k := rotate(t, nil, began)
	first := k[0].ID
	g.Expect(k.current(began).ID).To(Equal(first), "the first one counts at once")
	replaced := began.Add(lifetimes.Key)
	k = rotate(t, k, replaced)
	g.Expect(k).To(HaveLen(2))
	g.Expect(k.current(replaced.Add(settling - 1)).ID).To(Equal(first))
	g.Expect(k.current(replaced.Add(settling)).ID).NotTo(Equal(first))
	last := replaced.Add(settling + lifetimes.Token + settling)
	g.Expect(ids(k.usable(last.Add(-1), lifetimes.Token))).To(ContainElement(first))
	g.Expect(ids(k.usable(last, lifetimes.Token))).NotTo(ContainElement(first))
}

func TestOnlyPublicKeysArePublished(t *testing.T) {
	g := NewWithT(t)
	for _, published := range rotate(t, nil, began).public().Keys {
		g.Expect(published.IsPublic()).To(BeTrue())
		text, err := published.MarshalJSON()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).NotTo(ContainSubstring(`"d":`))
	}
}

func TestWhatAnotherKeySealedDoesNotOpen(t *testing.T) {
	g := NewWithT(t)
	mine, other := rotate(t, nil, began), rotate(t, nil, began)
	text, err := other.crypto(began).Encrypt("session")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = mine.crypto(began).Decrypt(text)
	g.Expect(err).To(HaveOccurred())
	g.Expect(slices.Equal(ids(mine), ids(other))).To(BeFalse())
}
