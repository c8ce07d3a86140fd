// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memorySpan is how long a write is remembered: longer than a cache lags behind it. Should an object be removed by others
// before the cache ever saw it, this is how long we wait for it in vain.
const memorySpan = 10 * time.Second

// Memory remembers what was just written, so that a pass on a cache that is behind can be told from one that is not, without
// asking the API server. A pass on what was true before our own last write would only do it all again, and be refused. A nil
// Memory remembers nothing.
type Memory struct {
	// written has the resource version by place; deleted and released have UIDs.
	written, deleted, released *cache.Expiring
}

// NewMemory makes a Memory that has nothing to remember.
func NewMemory() *Memory {
	return &Memory{written: cache.NewExpiring(), deleted: cache.NewExpiring(), released: cache.NewExpiring()}
}

// place is where an object is, whatever stands there.
type place struct {
	kind            reflect.Type
	namespace, name string
}

func placeOf(object client.Object) place {
	return place{reflect.TypeOf(object), object.GetNamespace(), object.GetName()}
}

// Behind tells whether a cached object is older than what we wrote there last, not yet seen to be deleted by us, or one that
// we have let go.
func (m *Memory) Behind(cached client.Object) bool {
	if m == nil {
		return false
	}
	if _, ok := m.released.Get(cached.GetUID()); ok {
		return true
	}
	if _, ok := m.deleted.Get(cached.GetUID()); ok && cached.GetDeletionTimestamp().IsZero() {
		return true
	}
	return m.olderThanWritten(cached)
}

// olderThanWritten compares with the last write in this place, which is forgotten once the cache shows it.
func (m *Memory) olderThanWritten(cached client.Object) bool {
	written, ok := m.written.Get(placeOf(cached))
	if !ok {
		return false
	}
	version, _ := written.(string)
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), version)
	if err != nil || order >= 0 {
		m.written.Delete(placeOf(cached))
		return false
	}
	return true
}

// expects tells whether something was written where the cache has nothing yet.
func (m *Memory) expects(object client.Object) bool {
	if m == nil {
		return false
	}
	_, ok := m.written.Get(placeOf(object))
	return ok
}

// note remembers an object as a write returned it.
func (m *Memory) note(object client.Object) {
	if m != nil {
		m.written.Set(placeOf(object), object.GetResourceVersion(), memorySpan)
	}
}

// noteRelease remembers that an object was let go: whatever the cache still shows of it is the past. What is made anew in its
// place is not waited for.
func (m *Memory) noteRelease(object client.Object) {
	if m != nil {
		m.written.Delete(placeOf(object))
		m.released.Set(object.GetUID(), true, memorySpan)
	}
}

// noteDeletion remembers that an object was asked to go, so that its deletion is waited for, and what was written before is not.
// A write since, by the reconciler that takes it down, counts on.
func (m *Memory) noteDeletion(object client.Object) {
	if m != nil {
		m.olderThanWritten(object)
		m.deleted.Set(object.GetUID(), true, memorySpan)
	}
}
