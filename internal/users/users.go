// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package users keeps those who sign in with a password, in a Secret: one key for each, named as they are.
package users

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"golang.org/x/crypto/bcrypt"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Namespace is where the Secret of users is.
	Namespace = "kubeopera-core"
	// Secret is its name.
	Secret = "auth-service-users" //nolint:gosec // The name of a Secret is none.

	// minPassword and maxPassword bound a password, in bytes. Of a longer one bcrypt would not look at the rest.
	minPassword, maxPassword = 12, 72
	// cost of a hash: a quarter of a second of one core.
	cost = 12
)

// User is what is kept of one who signs in.
type User struct {
	// PasswordHash is bcrypt's.
	PasswordHash string `json:"passwordHash"`
	// SuperAdmin makes them an administrator of the platform, who is in no tenant.
	SuperAdmin bool `json:"superAdmin,omitempty"`
}

// ErrNotFound tells that there is no user of that name.
var ErrNotFound = errors.New("there is no such user")

var validName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// ValidName tells whether a user can have that name, which is the claim sub of their tokens: 1 to 63 lower case letters, digits and
// . _ -, with a letter or digit at both ends.
func ValidName(name string) bool { return validName.MatchString(name) }

// New makes a user of a password.
func New(password string, superAdmin bool) (User, error) {
	if len(password) < minPassword || len(password) > maxPassword {
		return User{}, fmt.Errorf("a password has %d to %d bytes", minPassword, maxPassword)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	if err != nil {
		return User{}, err
	}
	return User{PasswordHash: string(hash), SuperAdmin: superAdmin}, nil
}

// absent stands in for a user that is not there. Nobody knows its password: nobody has written it down.
const absent = "$2a$12$uYUw13mwX2RqM4ixpjWqQ.oGPSnXR/xHfWMRAWG9kCUNSW7Tperlq"

// HasPassword tells whether it is the user's password. It takes as long for the zero User, whom no password opens.
func (u User) HasPassword(password string) bool {
	hash := u.PasswordHash
	if hash == "" {
		hash = absent
	}
	err := bcrypt.CompareHashAndPassword([]byte(hash), []byte(password))
	return err == nil && u.PasswordHash != "" && len(password) <= maxPassword
}

// Store reads and writes the Secret. It always reads what is there now.
type Store struct{ Client client.Client }

// Get returns one user, or ErrNotFound. An entry that cannot be read is an error.
func (s Store) Get(ctx context.Context, name string) (User, error) {
	secret, err := s.read(ctx)
	if err != nil {
		return User{}, err
	}
	return user(secret, name)
}

// List returns all users by name. It fails where one cannot be read.
func (s Store) List(ctx context.Context) (map[string]User, error) {
	secret, err := s.read(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]User{}
	for name := range secret.Data {
		if all[name], err = user(secret, name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func user(secret *corev1.Secret, name string) (User, error) {
	text, found := secret.Data[name]
	if !found || !ValidName(name) {
		return User{}, ErrNotFound
	}
	var parsed User
	if err := json.Unmarshal(text, &parsed); err != nil || parsed.PasswordHash == "" {
		// The error of the decoder would quote what is in the Secret.
		return User{}, fmt.Errorf("key %s of Secret %s/%s is no user", name, Namespace, Secret)
	}
	return parsed, nil
}

// Put adds a user, or replaces the one of that name, and touches no other. It does not read: what others write meanwhile stays.
func (s Store) Put(ctx context.Context, name string, user User) error {
	if !ValidName(name) {
		return fmt.Errorf("%q cannot be a user's name: it has 1 to 63 lower case letters, digits and . _ -, and begins and ends with a letter or digit", name)
	}
	text, err := json.Marshal(user)
	if err != nil {
		return err
	}
	return s.patch(ctx, map[string]any{name: text})
}

// Remove takes a user away, or returns ErrNotFound.
func (s Store) Remove(ctx context.Context, name string) error {
	secret, err := s.read(ctx)
	if err != nil {
		return err
	}
	if _, found := secret.Data[name]; !found {
		return ErrNotFound
	}
	return s.patch(ctx, map[string]any{name: nil})
}

func (s Store) read(ctx context.Context) (*corev1.Secret, error) {
	secret := object()
	return secret, s.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
}

func (s Store) patch(ctx context.Context, data map[string]any) error {
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return err
	}
	return s.Client.Patch(ctx, object(), client.RawPatch(types.MergePatchType, patch))
}

func object() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Secret}}
}
