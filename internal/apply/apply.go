// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply makes objects on the host cluster what they should be, without ever taking over one that is not ours.
//
// An object is made by create, which fails when the name is taken, and changed by update with the resource version that was
// compared. Server-side apply can do neither: it adopts whatever stands under the name. Compared is the whole body, so that
// a field altered by hand is put right; labels, annotations and finalizers of others stay.
package apply

import (
	"context"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

// Owner is the Tenant or CloudSpace that objects are made for. The platform itself, which owns what all CloudSpaces
// share, has the UID Platform and no names.
type Owner struct {
	Tenant, CloudSpace string
	UID                types.UID
	// Still fails with ErrPast when the owner is not there any more as it was read. It is asked before anything is made, taken or removed
	// for it; nil asks nothing. See StillAsRead.
	Still func(context.Context) error
}

// slowLook is how often an object that is in the way and not watched is looked at again.
const slowLook = 2 * time.Second

// Platform owns what all CloudSpaces share.
var Platform = Owner{UID: "platform"}

// Owns tells whether an object was made for this owner.
func (o Owner) Owns(object client.Object) bool {
	return o.UID != "" && object.GetLabels()[v1alpha1.LabelOwnerUID] == string(o.UID)
}

// Labels that stand on everything made for this owner.
func (o Owner) Labels() map[string]string {
	labels := map[string]string{v1alpha1.LabelOwnerUID: string(o.UID)}
	if o.Tenant != "" {
		labels[v1alpha1.LabelTenant] = o.Tenant
	}
	if o.CloudSpace != "" {
		labels[v1alpha1.LabelCloudSpace] = o.CloudSpace
	}
	return labels
}

// Applier writes to the host cluster.
type Applier struct {
	Client client.Client
	// Live reads past the cache, to tell a stale view from an object of somebody else.
	Live client.Reader
	// Memory is what was just written.
	Memory *Memory
}

// Ensure makes the object what desired says, given what the cache has of it (nil when it has none), and returns it as it
// stands. Nothing is written when it is right already. The error is terminal with reason NotOurs when somebody else's
// object has the name, and ErrStale or a conflict when the cache is behind.
func Ensure[O any, T interface {
	*O
	client.Object
}](ctx context.Context, a Applier, owner Owner, cached, desired T) (T, error) {
	desired.SetLabels(merge(desired.GetLabels(), owner.Labels()))
	if cached == nil {
		return desired, a.create(ctx, owner, desired)
	}
	if a.Memory.Behind(cached) {
		return cached, step.ErrStale
	}
	if !owner.Owns(cached) || !cached.GetDeletionTimestamp().IsZero() {
		return cached, a.inTheWay(cached)
	}
	same, err := covers(cached, desired)
	if err != nil || same {
		return cached, err
	}
	adoptMetadata(desired, cached)
	if err := a.Client.Update(ctx, desired); err != nil {
		return cached, err
	}
	a.Memory.note(desired)
	return desired, nil
}

func (a Applier) create(ctx context.Context, owner Owner, desired client.Object) error {
	if a.Memory.expects(desired) {
		return step.ErrStale
	}
	if err := owner.Confirm(ctx); err != nil {
		return err
	}
	err := a.Client.Create(ctx, desired)
	if err == nil {
		a.Memory.note(desired)
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	live, ok := desired.DeepCopyObject().(client.Object)
	if !ok {
		return err
	}
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(desired), live); err != nil {
		if apierrors.IsNotFound(err) {
			return step.ErrStale
		}
		return err
	}
	if owner.Owns(live) {
		return a.relabel(ctx, live, desired)
	}
	return a.inTheWay(live)
}

// relabel puts back labels that were taken off an object of ours: caches select by them, and would not show it again. An object that
// has them all was only not seen yet.
func (a Applier) relabel(ctx context.Context, live, desired client.Object) error {
	if contains(live.GetLabels(), desired.GetLabels()) {
		return step.ErrStale
	}
	live.SetLabels(merge(live.GetLabels(), desired.GetLabels()))
	if err := a.Client.Update(ctx, live); err != nil {
		return err
	}
	a.Memory.note(live)
	return step.ErrStale
}

// inTheWay explains why an object under our name cannot be used: it goes away by itself, or it is somebody else's.
func (a Applier) inTheWay(object client.Object) error {
	kind := "object"
	if gvk, err := apiutil.GVKForObject(object, a.Client.Scheme()); err == nil {
		kind = gvk.Kind
	}
	if !object.GetDeletionTimestamp().IsZero() {
		message := fmt.Sprintf("an earlier %s %s is still being deleted", kind, object.GetName())
		if held := Held(object); held != "" {
			message += ": " + held
		}
		return step.WaitFor(slowLook, v1alpha1.ReasonTerminating, message)
	}
	return step.Terminal(v1alpha1.ReasonNotOurs,
		fmt.Sprintf("%s %s exists and was not made for this object; it is left alone", kind, object.GetName()))
}

// covers tells whether live has the labels and annotations that are desired, and exactly the desired body.
func covers(live, desired client.Object) (bool, error) {
	if !contains(live.GetLabels(), desired.GetLabels()) || !contains(live.GetAnnotations(), desired.GetAnnotations()) {
		return false, nil
	}
	liveBody, err := body(live)
	if err != nil {
		return false, err
	}
	desiredBody, err := body(desired)
	if err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(liveBody, desiredBody), nil
}

// body is all of an object but its identity and its status.
func body(object client.Object) (map[string]any, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(content, key)
	}
	return content, nil
}

// adoptMetadata gives desired the identity of live and what others have put on it.
func adoptMetadata(desired, live client.Object) {
	desired.SetUID(live.GetUID())
	desired.SetResourceVersion(live.GetResourceVersion())
	desired.SetFinalizers(live.GetFinalizers())
	desired.SetOwnerReferences(live.GetOwnerReferences())
	desired.SetLabels(merge(live.GetLabels(), desired.GetLabels()))
	desired.SetAnnotations(merge(live.GetAnnotations(), desired.GetAnnotations()))
}

func merge(base, over map[string]string) map[string]string {
	merged := maps.Clone(base)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, over)
	return merged
}

func contains(all, some map[string]string) bool {
	for key, value := range some {
		if got, ok := all[key]; !ok || got != value {
			return false
		}
	}
	return true
}
