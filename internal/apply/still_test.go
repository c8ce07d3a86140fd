// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/internal/step"
)

// live counts the looks at the owner, and can refuse them.
type live struct {
	client.Reader
	looks  int
	refuse error
}

func (l *live) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	l.looks++
	if l.refuse != nil {
		return l.refuse
	}
	return l.Reader.Get(ctx, key, into, options...)
}

// owning is the owner of these tests, as the cache has it.
func owning(alter ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "space", Name: "owner", UID: "uid-alice", Finalizers: []string{"example.com/ours"}}}
	for _, a := range alter {
		a(owner)
	}
	return owner
}

func goes(o *corev1.ConfigMap) {
	o.DeletionTimestamp = &metav1.Time{Time: metav1.Now().Rfc3339Copy().Time}
}

// ways are all in which something is made, taken or removed for an owner, each with what it writes.
var ways = map[string]func(context.Context, Applier, Owner, *world) error{
	"create": func(ctx context.Context, a Applier, of Owner, _ *world) error {
		missing := wanted()
		missing.Name = "missing"
		_, err := Ensure(ctx, a, of, nil, missing)
		return err
	},
	"claim": func(ctx context.Context, a Applier, of Owner, w *world) error {
		return a.Claim(ctx, of, w.copyOf(ctx))
	},
	"delete": func(ctx context.Context, a Applier, of Owner, _ *world) error {
		_, err := a.Delete(ctx, of, wanted())
		return err
	},
	"remove": func(ctx context.Context, a Applier, of Owner, w *world) error {
		return a.Remove(ctx, of, w.copyOf(ctx))
	},
	"verify": func(ctx context.Context, a Applier, of Owner, _ *world) error {
		_, err := a.Verify(ctx, of, wanted())
		return err
	},
}

func (w *world) copyOf(ctx context.Context) client.Object {
	into := wanted()
	_ = w.Client.Get(ctx, client.ObjectKeyFromObject(into), into)
	return into
}

func TestNothingIsDoneForAnOwnerThatIsNotThereAsItWasRead(t *testing.T) {
	boom := errors.New("boom")
	tests := map[string]struct {
		seen, stands *corev1.ConfigMap
		refuse       error
		want         error
	}{
		"it is there":                             {seen: owning(), stands: owning()},
		"it changed meanwhile, and is the same":   {seen: owning(), stands: owning(func(o *corev1.ConfigMap) { o.Data = map[string]string{"changed": "yes"} })},
		"it is being deleted, as was seen":        {seen: owning(goes), stands: owning(goes)},
		"it is gone":                              {seen: owning(), want: step.ErrPast},
		"it is gone, and was seen to go":          {seen: owning(goes), want: step.ErrPast},
		"another one has its name":                {seen: owning(), stands: owning(func(o *corev1.ConfigMap) { o.UID = "uid-of-a-later-one" }), want: step.ErrPast},
		"it is being deleted, which was not seen": {seen: owning(), stands: owning(goes), want: step.ErrPast},
		"it was seen to go, and does not":         {seen: owning(goes), stands: owning(), want: step.ErrPast},
		"its spec is another":                     {seen: owning(), stands: owning(func(o *corev1.ConfigMap) { o.Generation = 2 }), want: step.ErrPast},
		"it has lost our finalizer": {
			seen: owning(), stands: owning(func(o *corev1.ConfigMap) { o.Finalizers = []string{"example.com/theirs"} }), want: step.ErrPast,
		},
		"whether it is cannot be told": {seen: owning(), stands: owning(), refuse: boom, want: boom},
	}
	for name, tt := range tests {
		for way, act := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				w := newWorld(quota())
				if tt.stands != nil {
					w = newWorld(quota(), tt.stands)
				}
				of := alice
				of.Still = Applier{Client: w.Client, Live: &live{Reader: w.Client, refuse: tt.refuse}}.StillAsRead(tt.seen)
				err := act(t.Context(), w.applier(), of, w)
				if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
					t.Errorf("got %v, want %v", err, tt.want)
				}
				if done := len(w.writes); (done == 0) != (tt.want != nil) {
					t.Errorf("%v was written", w.writes)
				}
			})
		}
	}
}

func TestTheOwnerIsLookedForOnceAtMost(t *testing.T) {
	for name, tt := range map[string]struct {
		owner *corev1.ConfigMap
		want  int
	}{
		"when it is there":     {owner: owning(), want: 1},
		"when it is not there": {owner: owning(func(o *corev1.ConfigMap) { o.Name = "another" }), want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(quota(), owning())
			l := &live{Reader: w.Client}
			of := alice
			of.Still = Applier{Client: w.Client, Live: l}.StillAsRead(tt.owner)
			if _, err := Ensure(t.Context(), w.applier(), of, w.get(t), wanted()); err != nil || l.looks != 0 {
				t.Errorf("what stands took %d looks, %v, want none", l.looks, err)
			}
			for _, act := range ways {
				_ = act(t.Context(), w.applier(), of, w)
			}
			if l.looks != tt.want {
				t.Errorf("it took %d looks, want %d", l.looks, tt.want)
			}
		})
	}
}
