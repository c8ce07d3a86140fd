// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/tantilium/cloud-runner/internal/step"
)

// stale is the applier of an operator whose cache has nothing yet, or what it is given, of what the API server has.
func stale(server, cache *world) Applier {
	return Applier{Client: splitClient{server, cache}, Live: server.Client, Memory: NewMemory()}
}

func TestWhatWasJustWrittenIsNotWrittenAgain(t *testing.T) {
	server := newWorld()
	a := stale(server, newWorld())
	made, err := Ensure(t.Context(), a, alice, nil, wanted())
	if err != nil {
		t.Fatal(err)
	}
	asMade := made.DeepCopy()

	server.writes = nil
	if _, err := Ensure(t.Context(), a, alice, nil, wanted()); !errors.Is(err, step.ErrStale) {
		t.Errorf("the cache does not have it yet: %v, want ErrStale", err)
	}
	if _, err := a.Delete(t.Context(), alice, wanted()); !errors.Is(err, step.ErrStale) {
		t.Errorf("deleting what the cache does not have yet: %v, want ErrStale, or it would count as gone", err)
	}
	if diff := cmp.Diff([]string(nil), server.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}

	larger := func() *corev1.ResourceQuota { q := wanted(); altered(q); return q }
	if _, err := Ensure(t.Context(), a, alice, asMade, larger()); err != nil {
		t.Fatalf("the cache has it: %v", err)
	}
	if _, err := Ensure(t.Context(), a, alice, asMade, larger()); !errors.Is(err, step.ErrStale) {
		t.Errorf("the cache has it as it was before the update: %v, want ErrStale", err)
	}
	if diff := cmp.Diff([]string{"update quota"}, server.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if _, err := Ensure(t.Context(), a, alice, server.get(t), larger()); err != nil {
		t.Errorf("the cache has caught up: %v", err)
	}
}

func TestWhatWasJustDeletedIsNotDeletedAgain(t *testing.T) {
	server := newWorld(quota())
	a := stale(server, newWorld(quota()))
	for pass := range 3 {
		gone, err := a.Delete(t.Context(), alice, wanted())
		if gone || err != nil {
			t.Errorf("pass %d, while the cache still has it: gone is %v, %v, want neither", pass, gone, err)
		}
	}
	if diff := cmp.Diff([]string{"delete quota"}, server.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestVerifyFindsWhatNoCacheHasSeen(t *testing.T) {
	server := newWorld(quota())
	a := stale(server, newWorld())
	gone, err := a.Delete(t.Context(), alice, wanted())
	if !gone || err != nil {
		t.Fatalf("the cache has nothing: gone is %v, %v", gone, err)
	}
	for _, want := range []bool{false, true} {
		if gone, err := a.Verify(t.Context(), alice, wanted()); gone != want || err != nil {
			t.Errorf("gone is %v, %v, want %v", gone, err, want)
		}
	}
	if diff := cmp.Diff([]string{"delete quota"}, server.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	theirs := newWorld(quota(foreign))
	if gone, err := stale(theirs, newWorld()).Verify(t.Context(), alice, wanted()); !gone || err != nil || len(theirs.writes) > 0 {
		t.Errorf("somebody else's: gone is %v, %v after %v, want it left alone", gone, err, theirs.writes)
	}
}

// After its finalizer is removed the cache may show an owner for a while: a pass on it would take down what is gone. One that is
// made anew under the same name must not wait for that.
func TestAnOwnerThatWasLetGoIsThePast(t *testing.T) {
	const finalizer = "tenancy.kubeopera.io/cloudspace"
	held := func(q *corev1.ResourceQuota) { q.Finalizers = []string{finalizer} }
	server := newWorld(quota(deleting, held))
	a := Applier{Client: server.Client, Live: server.Client, Memory: NewMemory()}
	before := server.get(t)
	if err := a.RemoveFinalizer(t.Context(), before.DeepCopy(), finalizer); err != nil {
		t.Fatal(err)
	}
	if !a.Memory.Behind(before) {
		t.Error("what the cache shows of it is not behind")
	}
	anew := quota(func(q *corev1.ResourceQuota) { q.UID = "uid-anew" })
	if a.Memory.expects(anew) || a.Memory.Behind(anew) {
		t.Error("one that is made anew is waited for")
	}
}

// One reconciler deletes a CloudSpace while another takes it down: what the second has written meanwhile still counts.
func TestWritesToWhatIsBeingDeletedAreRemembered(t *testing.T) {
	m := NewMemory()
	asRead := quota(func(q *corev1.ResourceQuota) { q.ResourceVersion = "5" })
	underWay := quota(deleting, func(q *corev1.ResourceQuota) { q.ResourceVersion = "6" })
	written := quota(deleting, func(q *corev1.ResourceQuota) { q.ResourceVersion = "7" })
	m.note(written)
	m.noteDeletion(asRead)
	// A cache goes on: what it has once shown ends the memory of the write.
	for _, tt := range []struct {
		shows  string
		cached *corev1.ResourceQuota
		want   bool
	}{
		{"before the deletion", asRead, true},
		{"deleted, before the write", underWay, true},
		{"deleted, and the write is in", written, false},
	} {
		if got := m.Behind(tt.cached); got != tt.want {
			t.Errorf("the cache shows it %s: behind is %v, want %v", tt.shows, got, tt.want)
		}
	}
}
