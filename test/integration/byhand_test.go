// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tantilium/cloud-runner/controllers"
)

const masters = "system:masters"

// impersonating is the administrator under another name.
func impersonating(user string, groups ...string) *rest.Config {
	config := rest.CopyConfig(adminConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

// identity is a client of somebody: with all rights where the groups have them.
func identity(t *testing.T, user string, groups ...string) client.WithWatch {
	t.Helper()
	somebody, err := client.NewWithWatch(impersonating(user, groups...), client.Options{Scheme: controllers.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return somebody
}

// byHand is an administrator who takes the operator's name for what nobody else may change, as docs/isolation.md says.
func byHand(admin client.WithWatch) (client.WithWatch, error) {
	operator, err := client.NewWithWatch(impersonating(operatorUser, masters), client.Options{Scheme: controllers.Scheme()})
	if err != nil {
		return nil, err
	}
	whose := func(c client.WithWatch, object client.Object) client.WithWatch {
		if isTheOperators(object) {
			return operator
		}
		return c
	}
	return interceptor.NewClient(admin, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return whose(c, o).Create(ctx, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return whose(c, o).Update(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			return whose(c, o).Patch(ctx, o, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return whose(c, o).Delete(ctx, o, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if isTheOperators(o) {
				c = operator
			}
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	}), nil
}

// isTheOperators tells whether nobody but the operator may change an object: a host namespace, and what isolates it.
func isTheOperators(object client.Object) bool {
	switch object.(type) {
	case *corev1.Namespace:
		return strings.HasPrefix(object.GetName(), "vcluster-")
	case *corev1.ResourceQuota, *corev1.LimitRange, *networkingv1.NetworkPolicy:
		return strings.HasPrefix(object.GetNamespace(), "vcluster-")
	}
	return false
}
