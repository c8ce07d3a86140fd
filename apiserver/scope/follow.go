// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/cache"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Why a context of Follow ends before its parent does.
var (
	// ErrExpired says that the caller's token is not valid any more.
	ErrExpired = errors.New("the token has expired")
	// ErrMembershipChanged says that the caller sees something else than before, or nothing.
	ErrMembershipChanged = errors.New("the membership has changed")
)

// Follow gives a context that ends, with the cause, as soon as the caller does not see any more what the scope has in it, or is nobody any
// more. The function that comes with it ends it too, and must be called.
func (r *Resolver) Follow(ctx context.Context, caller user.Info, scope Scope) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	ctx, stop := context.WithDeadlineCause(ctx, expiry(caller), ErrExpired)
	ctx, leave := context.WithTimeout(ctx, longest)
	w := &watched{caller: caller, scope: scope, end: end}
	remove := r.watches.add(w)
	// The membership may have ended since the scope was found out, when nobody followed it yet.
	r.check(ctx, w)
	return ctx, func() {
		remove()
		leave()
		stop()
		end(context.Canceled)
	}
}

// longest is how long anybody is followed, however long they ask for. It bounds what nobody tells of: that an administrator's right was
// taken away, or that a ServiceAccount is gone. Clients go on where they were.
const longest = 10 * time.Minute

// TenantsChanged is to be told of every change of a Tenant, after Tenants knows of it.
func (r *Resolver) TenantsChanged() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { r.changed(object) },
		UpdateFunc: func(before, after any) {
			if !sameMembers(before, after) {
				r.changed(after)
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			r.changed(object)
		},
	}
}

func (r *Resolver) changed(object any) {
	tenant, ok := object.(*v1alpha1.Tenant)
	if !ok {
		return
	}
	for _, w := range r.watches.of(tenant.Name) {
		r.check(context.Background(), w)
	}
}

// check ends what is watched if the caller sees something else by now. Not to know is to end: the client asks again.
func (r *Resolver) check(ctx context.Context, w *watched) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if w.scope.tenant == "" {
		return
	}
	if now, err := r.Resolve(ctx, w.caller); err != nil || now != w.scope {
		w.end(ErrMembershipChanged)
	}
}

// checkTimeout bounds how long a watch whose Tenant has changed may go on without an answer.
const checkTimeout = 5 * time.Second

// sameMembers tells that nothing changed that a scope is found out from.
func sameMembers(before, after any) bool {
	old, ok := before.(*v1alpha1.Tenant)
	tenant, isTenant := after.(*v1alpha1.Tenant)
	return ok && isTenant && old.UID == tenant.UID && old.Status.NamespaceUID == tenant.Status.NamespaceUID &&
		reflect.DeepEqual(old.Spec.Members, tenant.Spec.Members)
}

// farFuture is when a caller expires whose credentials do not tell. The server's own limit on watches comes long before.
var farFuture = time.Unix(1<<40, 0)

// expiry is when the caller's token ends. One that cannot be read has ended.
func expiry(caller user.Info) time.Time {
	text, found, err := single(caller, extraTokenExpires)
	if err == nil && !found {
		return farFuture
	}
	seconds, parseErr := strconv.ParseInt(text, 10, 64)
	if err != nil || parseErr != nil {
		return time.Unix(0, 0)
	}
	return time.Unix(seconds, 0)
}

// watched is what one caller follows.
type watched struct {
	caller user.Info
	scope  Scope
	end    context.CancelCauseFunc
}

// watches by tenant.
type watches struct {
	mu       sync.Mutex
	byTenant map[string]map[*watched]struct{}
}

func (ws *watches) add(w *watched) (remove func()) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byTenant == nil {
		ws.byTenant = map[string]map[*watched]struct{}{}
	}
	if ws.byTenant[w.scope.tenant] == nil {
		ws.byTenant[w.scope.tenant] = map[*watched]struct{}{}
	}
	ws.byTenant[w.scope.tenant][w] = struct{}{}
	return func() { ws.remove(w) }
}

func (ws *watches) remove(w *watched) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.byTenant[w.scope.tenant], w)
	if len(ws.byTenant[w.scope.tenant]) == 0 {
		delete(ws.byTenant, w.scope.tenant)
	}
}

func (ws *watches) of(tenant string) []*watched {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	all := make([]*watched, 0, len(ws.byTenant[tenant]))
	for w := range ws.byTenant[tenant] {
		all = append(all, w)
	}
	return all
}
