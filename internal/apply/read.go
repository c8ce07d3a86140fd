// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Read puts an object into the place it belongs, or nil when there is none.
func Read[O any, T interface {
	*O
	client.Object
}](ctx context.Context, reader client.Reader, into *T, namespace, name string) error {
	object := T(new(O))
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object); {
	case apierrors.IsNotFound(err):
		*into = nil
		return nil
	case err != nil:
		return err
	default:
		*into = object
		return nil
	}
}
