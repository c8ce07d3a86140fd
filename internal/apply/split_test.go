// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// splitClient writes to one world and reads from another, as a client with a cache does.
type splitClient struct {
	*world
	cache *world
}

// Get reads from the cache.
func (s splitClient) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return s.cache.Client.Get(ctx, key, into, options...)
}
