// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tantilium/cloud-runner/internal/step"
)

func TestNothingIsMadeForAnOwnerThatIsNotThereAsItWasRead(t *testing.T) {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "space", Name: "owner", UID: "uid-alice"}}
	altered := func(alter func(*corev1.ConfigMap)) *corev1.ConfigMap {
		o := owner.DeepCopy()
		alter(o)
		return o
	}
	boom := errors.New("boom")
	tests := map[string]struct {
		stands     *corev1.ConfigMap
		unreadable error
		wantErr    error
		wantWrites []string
	}{
		"it is there": {stands: owner, wantWrites: []string{"create quota"}},
		"it changed meanwhile, and is the same": {
			stands:     altered(func(o *corev1.ConfigMap) { o.Data = map[string]string{"changed": "yes"} }),
			wantWrites: []string{"create quota"},
		},
		"it is gone":                   {wantErr: step.ErrStale},
		"another one has its name":     {stands: altered(func(o *corev1.ConfigMap) { o.UID = "uid-of-a-later-one" }), wantErr: step.ErrStale},
		"whether it is cannot be told": {stands: owner, unreadable: boom, wantErr: boom},
		"it is being deleted": {
			stands: altered(func(o *corev1.ConfigMap) {
				o.Finalizers, o.DeletionTimestamp = []string{"example.com/hold"}, &metav1.Time{Time: metav1.Now().Rfc3339Copy().Time}
			}),
			wantErr: step.ErrStale,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if tt.stands != nil {
				w = newWorld(tt.stands)
			}
			live := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if tt.unreadable != nil {
						return tt.unreadable
					}
					return c.Get(ctx, key, o, options...)
				},
			})
			a := Applier{Client: w.Client, Live: live}
			of := alice
			of.Still = a.StillThere(owner)
			if _, err := Ensure(t.Context(), a, of, nil, wanted()); !errors.Is(err, tt.wantErr) {
				t.Errorf("got %v, want %v", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.wantWrites, w.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOwnerIsLookedForOnceAtMost(t *testing.T) {
	w := newWorld(quota())
	looks := 0
	live := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			looks++
			return c.Get(ctx, key, o, options...)
		},
	})
	a := Applier{Client: w.Client, Live: live}
	of := alice
	of.Still = a.StillThere(quota())
	if _, err := Ensure(t.Context(), a, of, w.get(t), wanted()); err != nil || looks != 0 {
		t.Errorf("what stands took %d looks, %v, want none", looks, err)
	}
	for _, name := range []string{"first", "second"} {
		another := wanted()
		another.Name = name
		if _, err := Ensure(t.Context(), a, of, nil, another); err != nil {
			t.Fatal(err)
		}
	}
	if looks != 1 {
		t.Errorf("two objects took %d looks, want one", looks)
	}
}
