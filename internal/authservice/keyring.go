// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/internal/users"
)

const (
	// KeysSecret is where replicas share the keys, in the namespace of users.
	KeysSecret = "auth-service-keys" //nolint:gosec // The name of a Secret is none.
	keysEntry  = "keys.json"
	// reloading is how often the Secret is read: several times while a new key settles.
	reloading = 10 * time.Second
)

// keyring has the keys as the Secret last had them.
type keyring struct {
	client    client.Client
	clock     clock.PassiveClock
	lifetimes Lifetimes

	mu   sync.RWMutex
	keys keys
}

func (r *keyring) all() keys {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.keys
}

// run keeps the keys up to date until ctx ends. What was read last goes on counting while the Secret cannot be read.
func (r *keyring) run(ctx context.Context) {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := r.reload(ctx); err != nil {
			slog.WarnContext(ctx, "keys are not up to date", "error", err)
		}
	}, reloading, 0.1, true)
}

// reload reads the keys and, when it is time, writes new ones. Of replicas that do so at the same time one wins; the others read
// what it wrote.
func (r *keyring) reload(ctx context.Context) error {
	for {
		err := r.reloadOnce(ctx)
		if !apierrors.IsConflict(err) {
			return err
		}
	}
}

func (r *keyring) reloadOnce(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: users.Namespace, Name: KeysSecret}}
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return fmt.Errorf("reading the keys: %w", err)
	}
	var stored keys
	if text, found := secret.Data[keysEntry]; found {
		// The error of the decoder would quote what is in the Secret.
		if json.Unmarshal(text, &stored) != nil || len(stored) == 0 {
			return errors.New("what is in the Secret of the keys cannot be read; without it, new ones are made")
		}
	}
	next, err := stored.rotated(r.clock.Now(), r.lifetimes)
	if err != nil {
		return err
	}
	if len(stored) == 0 || next[len(next)-1].ID != stored[len(stored)-1].ID {
		text, err := json.Marshal(next)
		if err != nil {
			return err
		}
		secret.Data = map[string][]byte{keysEntry: text}
		if err := r.client.Update(ctx, secret); err != nil {
			return fmt.Errorf("writing the keys: %w", err)
		}
		slog.InfoContext(ctx, "a new key is published", "key", next[len(next)-1].ID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = next
	return nil
}
