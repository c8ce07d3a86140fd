// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const password = "correct horse battery"

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		"alice": true, "a": true, "alice.b-c_d": true, "7up": true, strings.Repeat("a", 63): true,
		"": false, "Alice": false, "alice@example.com": false, "system:admin": false, "-alice": false, "alice.": false, "a b": false,
		"alice\n": false, "..": false, strings.Repeat("a", 64): false, "аlice": false,
	} {
		if got := ValidName(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

func TestAPasswordOpensItsUserAlone(t *testing.T) {
	g := NewWithT(t)
	user, err := New(password, false)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(user.HasPassword(password)).To(BeTrue())
	for _, other := range []string{"", "correct horse batterz", password + " ", strings.ToUpper(password), user.PasswordHash} {
		g.Expect(user.HasPassword(other)).To(BeFalse(), "%q", other)
	}
}

func TestNoPasswordOpensAUserThatIsNotThere(t *testing.T) {
	for _, try := range []string{"", password, absent} {
		if (User{}).HasPassword(try) {
			t.Errorf("%q opens it", try)
		}
	}
}

// Otherwise the time that an answer takes would tell who there is.
func TestAUserThatIsNotThereCostsAsMuch(t *testing.T) {
	g := NewWithT(t)
	user, err := New(password, false)
	g.Expect(err).NotTo(HaveOccurred())
	for _, hash := range []string{user.PasswordHash, absent} {
		g.Expect(bcrypt.Cost([]byte(hash))).To(Equal(cost))
	}
}

func TestPasswordsHaveALength(t *testing.T) {
	for size, want := range map[int]bool{0: false, 11: false, 12: true, 72: true, 73: false} {
		if _, err := New(strings.Repeat("x", size), false); (err == nil) != want {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	long, err := New(strings.Repeat("x", 72), false)
	if err != nil {
		t.Fatal(err)
	}
	if long.HasPassword(strings.Repeat("x", 73)) {
		t.Error("what follows the 72nd byte does not count")
	}
}

func store(t *testing.T) Store {
	t.Helper()
	s := Store{Client: fake.NewClientBuilder().WithObjects(object()).Build()}
	for name, admin := range map[string]bool{"alice": false, "root": true} {
		if err := s.Put(t.Context(), name, User{PasswordHash: "hash of " + name, SuperAdmin: admin}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestUsersAreKept(t *testing.T) {
	g := NewWithT(t)
	s := store(t)
	g.Expect(s.Get(t.Context(), "root")).To(Equal(User{PasswordHash: "hash of root", SuperAdmin: true}))
	g.Expect(s.Put(t.Context(), "alice", User{PasswordHash: "another"})).To(Succeed())
	g.Expect(s.List(t.Context())).To(Equal(map[string]User{
		"alice": {PasswordHash: "another"}, "root": {PasswordHash: "hash of root", SuperAdmin: true},
	}))
	g.Expect(s.Remove(t.Context(), "alice")).To(Succeed())
	_, err := s.Get(t.Context(), "alice")
	g.Expect(err).To(MatchError(ErrNotFound))
	g.Expect(s.Remove(t.Context(), "alice")).To(MatchError(ErrNotFound))
	g.Expect(s.Get(t.Context(), "root")).To(HaveField("SuperAdmin", true))
}

func TestANameThatCannotBeIsNotWritten(t *testing.T) {
	g := NewWithT(t)
	g.Expect(store(t).Put(t.Context(), "system:admin", User{PasswordHash: "x"})).To(MatchError(ContainSubstring("cannot be a user's name")))
}

// What cannot be read is nobody, and what it holds is not told.
func TestAnEntryThatCannotBeReadIsNobody(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON": "secret!", "no hash": `{"superAdmin":true}`, "an empty hash": `{"passwordHash":""}`, "a list": `["secret!"]`, "empty": "",
		"a right that is a word": `{"passwordHash":"secret!","superAdmin":"yes"}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := store(t)
			var secret corev1.Secret
			g.Expect(s.Client.Get(t.Context(), client.ObjectKeyFromObject(object()), &secret)).To(Succeed())
			secret.Data["alice"] = []byte(text)
			g.Expect(s.Client.Update(t.Context(), &secret)).To(Succeed())
			user, err := s.Get(t.Context(), "alice")
			g.Expect(user).To(Equal(User{}))
			g.Expect(err).To(HaveOccurred())
			g.Expect(errors.Is(err, ErrNotFound)).To(BeFalse())
			g.Expect(err.Error()).NotTo(ContainSubstring("secret!"))
			_, err = s.List(t.Context())
			g.Expect(err).To(HaveOccurred())
		})
	}
}

// The contract with those who write the Secret by hand.
func TestTheFormOfAnEntry(t *testing.T) {
	g := NewWithT(t)
	g.Expect(json.Marshal(User{PasswordHash: "h", SuperAdmin: true})).To(MatchJSON(`{"passwordHash":"h","superAdmin":true}`))
}
