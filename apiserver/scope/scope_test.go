// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// fakeTenants stands in for the informer.
type fakeTenants map[string]*v1alpha1.Tenant

func (f fakeTenants) Get(name string) (*v1alpha1.Tenant, error) {
	if tenant, found := f[name]; found {
		return tenant, nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.Resource("tenants"), name)
}

// administrators lets the group system:masters do all.
func administrators(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	for _, group := range a.GetUser().GetGroups() {
		if group == user.SystemPrivilegedGroup && a.GetVerb() == "list" && a.GetNamespace() == "" && a.GetAPIGroup() == "tenancy.kubeopera.io" {
			return authorizer.DecisionAllow, "", nil
		}
		// Others count CloudSpaces; who the members of Tenants are is not for them.
		if group == "monitoring" && a.GetVerb() == "list" && a.GetResource() == "cloudspaces" {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func newTestResolver() (*Resolver, fakeTenants) {
	tenants := fakeTenants{"a": &v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"},
		Spec: v1alpha1.TenantSpec{Members: []v1alpha1.Member{
			{Kind: v1alpha1.MemberUser, Name: "kubeopera:alice", Role: v1alpha1.MemberViewer},
			{Kind: v1alpha1.MemberGroup, Name: "kubeopera:tenant:a:devs", Role: v1alpha1.MemberViewer},
			{Kind: v1alpha1.MemberServiceAccount, Namespace: "tenant-a", Name: "gitops", Role: v1alpha1.MemberEditor},
			{Kind: v1alpha1.MemberServiceAccount, Namespace: "default", Name: "gitops", Role: v1alpha1.MemberEditor},
		}},
		Status: v1alpha1.TenantStatus{NamespaceUID: "n-1"},
	}, "b": &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "b"}}}
	return &Resolver{
		Tenants: tenants, Authorizer: authorizer.AuthorizerFunc(administrators),
		NamespaceUID: func(_ context.Context, name string) (string, error) {
			if name == "tenant-a" {
				return "n-1", nil
			}
			return "", apierrors.NewNotFound(v1alpha1.Resource("namespaces"), name)
		},
	}, tenants
}

func of(name string, groups ...string) *user.DefaultInfo {
	return &user.DefaultInfo{Name: name, Groups: groups}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	account := func(namespace string) *user.DefaultInfo {
		return of("system:serviceaccount:"+namespace+":gitops", "system:serviceaccounts:"+namespace)
	}
	for name, tt := range map[string]struct {
		caller  user.Info
		want    Scope
		refused bool
	}{
		"a member":                                               {caller: of("kubeopera:alice", "kubeopera:tenant:a"), want: Scope{tenant: "a"}},
		"a member by a group":                                    {caller: of("kubeopera:dave", "kubeopera:tenant:a", "kubeopera:tenant:a:devs"), want: Scope{tenant: "a"}},
		"somebody with a token for a tenant":                     {caller: of("kubeopera:eve", "kubeopera:tenant:a"), refused: true},
		"a member with a token for another":                      {caller: of("kubeopera:alice", "kubeopera:tenant:b"), refused: true},
		"a tenant that there is not":                             {caller: of("kubeopera:alice", "kubeopera:tenant:c"), refused: true},
		"a member without a token for it":                        {caller: of("kubeopera:alice"), refused: true},
		"a ServiceAccount":                                       {caller: account("tenant-a"), want: Scope{tenant: "a"}},
		"a ServiceAccount that is a member, and lives elsewhere": {caller: account("default"), refused: true},
		"an administrator":                                       {caller: of("root", user.SystemPrivilegedGroup), want: Scope{all: true}},
		"an administrator with a broken tenant":                  {caller: of("root", user.SystemPrivilegedGroup, "kubeopera:tenant:"), refused: true},
		"who may list CloudSpaces, but not Tenants":              {caller: of("system:serviceaccount:monitoring:a", "monitoring"), refused: true},
		"anonymous": {caller: of(user.Anonymous, user.SystemPrivilegedGroup), refused: true},
		"nobody":    {refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newTestResolver()
			got, err := r.Resolve(t.Context(), tt.caller)
			if (err != nil) != tt.refused || got != tt.want {
				t.Errorf("it is %+v (%v), not %+v", got, err, tt.want)
			}
		})
	}
}

// The name of a namespace is not enough: an earlier one could have had it.
func TestAServiceAccountOfAnEarlierNamespaceIsNobody(t *testing.T) {
	t.Parallel()
	r, tenants := newTestResolver()
	tenants["a"].Status.NamespaceUID = "n-2"
	_, err := r.Resolve(t.Context(), of("system:serviceaccount:tenant-a:gitops", "system:serviceaccounts:tenant-a"))
	if !errors.Is(err, errNothing) {
		t.Errorf("it is let in: %v", err)
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	alice := of("kubeopera:alice", "kubeopera:tenant:a")
	change := func(alter func(*v1alpha1.Tenant)) func(cache.ResourceEventHandler, fakeTenants) {
		return func(handler cache.ResourceEventHandler, tenants fakeTenants) {
			before := tenants["a"]
			tenants["a"] = before.DeepCopy()
			alter(tenants["a"])
			handler.OnUpdate(before, tenants["a"])
		}
	}
	for name, tt := range map[string]struct {
		change func(cache.ResourceEventHandler, fakeTenants)
		ends   bool
	}{
		"no longer a member": {change: change(func(tenant *v1alpha1.Tenant) { tenant.Spec.Members = nil }), ends: true},
		"the Tenant is gone": {ends: true, change: func(handler cache.ResourceEventHandler, tenants fakeTenants) {
			gone := tenants["a"]
			delete(tenants, "a")
			handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "a", Obj: gone})
		}},
		"another role":      {change: change(func(tenant *v1alpha1.Tenant) { tenant.Spec.Members[0].Role = v1alpha1.MemberOwner })},
		"another's changes": {change: change(func(tenant *v1alpha1.Tenant) { tenant.Name = "b"; tenant.Spec.Members = nil })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gomega.NewWithT(t)
			r, tenants := newTestResolver()
			if name == "another's changes" {
				tenants = fakeTenants{"a": tenants["a"].DeepCopy()}
			}
			ctx, end := r.Follow(t.Context(), alice, Scope{tenant: "a"})
			defer end()
			tt.change(r.TenantsChanged(), tenants)
			g.Expect(ctx.Err() != nil).To(gomega.Equal(tt.ends))
			if tt.ends {
				g.Expect(context.Cause(ctx)).To(gomega.MatchError(ErrMembershipChanged))
			}
			end()
			g.Expect(r.watches.byTenant).To(gomega.BeEmpty(), "nothing is kept of what has ended")
		})
	}
}

// A membership that ended before it was followed is seen all the same.
func TestFollowSeesWhatHappenedBefore(t *testing.T) {
	t.Parallel()
	r, tenants := newTestResolver()
	delete(tenants, "a")
	ctx, end := r.Follow(t.Context(), of("kubeopera:alice", "kubeopera:tenant:a"), Scope{tenant: "a"})
	defer end()
	if !errors.Is(context.Cause(ctx), ErrMembershipChanged) {
		t.Error("it goes on")
	}
}

func TestFollowEndsWithTheToken(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		expires []string
		ended   bool
	}{
		"in the past":          {[]string{"1"}, true},
		"in the future":        {[]string{strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)}, false},
		"that cannot be read":  {[]string{"soon"}, true},
		"twice":                {[]string{"99999999999", "99999999999"}, true},
		"that nobody tells of": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := newTestResolver()
			alice := of("kubeopera:alice", "kubeopera:tenant:a")
			if tt.expires != nil {
				alice.Extra = map[string][]string{"kubeopera.io/token-expires": tt.expires}
			}
			ctx, end := r.Follow(t.Context(), alice, Scope{tenant: "a"})
			defer end()
			if ended := ctx.Err() != nil; ended != tt.ended {
				t.Errorf("ended: %v", ended)
			}
		})
	}
}

// Nobody tells when an administrator's right was taken away: the watch ends before long, quietly, and the next one is asked for anew.
func TestNobodyIsFollowedForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, _ := newTestResolver()
		ctx, end := r.Follow(t.Context(), of("root", user.SystemPrivilegedGroup), Scope{all: true})
		defer end()
		<-time.After(9 * time.Minute)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("it has ended")
		}
		<-time.After(2 * time.Minute)
		synctest.Wait()
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("it goes on: %v", cause)
		}
	})
}

// What went wrong on the host is not for callers.
func TestWhatCannotBeFoundOutIsUnknown(t *testing.T) {
	t.Parallel()
	r, _ := newTestResolver()
	broken := errors.New("dial tcp 10.0.0.1:443")
	r.NamespaceUID = func(context.Context, string) (string, error) { return "", broken }
	r.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", broken
	})
	for name, caller := range map[string]user.Info{
		"whose namespace it is":        of("system:serviceaccount:tenant-a:gitops", "system:serviceaccounts:tenant-a"),
		"whether it is administrators": of("root", user.SystemPrivilegedGroup),
	} {
		if _, err := r.Resolve(t.Context(), caller); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
