// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Become gives how to come to kube-apiserver as a caller. Not known tells that it refuses what they show.
type Become func(t *testing.T, caller Caller) (as *rest.Config, known bool)

// ByImpersonation comes as an administrator of the host cluster, who can act as everybody.
func ByImpersonation(admin *rest.Config) Become {
	return func(_ *testing.T, caller Caller) (*rest.Config, bool) {
		as := rest.CopyConfig(admin)
		as.Impersonate = caller.Identity
		return as, true
	}
}

// Run does all that is served, at each place, as each caller, and compares the answers with the table. Tenants and CloudSpaces must be
// there; so must ServiceAccounts, where they come with tokens.
func Run(t *testing.T, admin *rest.Config, become Become) {
	t.Helper()
	served := verbsServed(t, admin)
	for who := range Callers() {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			a := newAttacker(t, admin, who, become)
			a.awaitMembership(t)
			for _, each := range served {
				for _, at := range table[each.row()].places() {
					a.attack(t, each, at)
				}
			}
		})
	}
}

// served is a verb that the view has for a resource.
type served struct{ resource, verb string }

// row is the name of what is expected in the table.
func (s served) row() string { return s.resource + " " + s.verb }

// verbsServed gives what discovery tells of. The table must have the same, no more and no less.
func verbsServed(t *testing.T, admin *rest.Config) []served {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(admin)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := client.ServerResourcesForGroupVersion("view.kubeopera.io/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	var all []served
	found := map[string]bool{}
	for i := range resources.APIResources {
		for _, verb := range resources.APIResources[i].Verbs {
			each := served{resources.APIResources[i].Name, verb}
			if _, written := table[each.row()]; !written || methods[verb] == "" {
				t.Fatalf("what is expected of %s is not written down", each.row())
			}
			found[each.row()] = true
			all = append(all, each)
		}
	}
	for row := range table {
		if !found[row] {
			t.Errorf("%s is expected, and not served", row)
		}
	}
	return all
}

// attack does one thing and looks at the answer.
func (a attacker) attack(t *testing.T, each served, at string) {
	t.Helper()
	want, found := table[each.row()].expected(a.who, at)
	if !found {
		t.Fatalf("what is expected of %s by %s is not written down", each.row(), a.who)
	}
	if a.unknown {
		want = http.StatusUnauthorized
	}
	code, text := a.asks(t, each, targetOf(each, at))
	if code != want {
		t.Errorf("%s, %s: the answer is %d, not %d: %.300s", each.row(), at, code, want, text)
	}
	if a.isTold(code, text) {
		t.Errorf("%s, %s: the answer has something of another tenant in it: %s", each.row(), at, text)
	}
}

// isTold tells that an answer has something in it of a tenant that is not the caller's.
func (a attacker) isTold(code int, text string) bool {
	if a.who == "super_admin" {
		return false
	}
	for _, tenant := range []string{Own, Foreign} {
		// An error may have the name in it that was asked for.
		if tenant != a.caller.home() && (strings.Contains(text, displayNameOf(tenant)) || code == http.StatusOK && strings.Contains(text, tenant)) {
			return true
		}
	}
	return false
}

// awaitMembership waits until members are known as such: what makes them so is made a moment after the Tenant.
func (a attacker) awaitMembership(t *testing.T) {
	t.Helper()
	if a.caller.home() == "" {
		return
	}
	gomega.NewWithT(t).Eventually(func() int {
		code, _ := a.asks(t, served{"cloudspaces", "list"}, target{namespace: namespaceOf(a.caller.home())})
		return code
	}).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(gomega.Equal(http.StatusOK))
}

// Subresources asks for subresources of a CloudSpace, as each caller. There are none: they are not there for an administrator of the host
// cluster, and nobody else may ask.
func Subresources(t *testing.T, admin *rest.Config, become Become) {
	t.Helper()
	for who := range Callers() {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			a := newAttacker(t, admin, who, become)
			want := http.StatusForbidden
			if a.unknown {
				want = http.StatusUnauthorized
			}
			subresources(t, a.client, want)
		})
	}
	t.Run("an administrator of the host cluster", func(t *testing.T) {
		t.Parallel()
		subresources(t, clientFor(t, admin), http.StatusNotFound)
	})
}

func subresources(t *testing.T, client *rest.RESTClient, want int) {
	t.Helper()
	one := target{namespaceOf(Own), ownCloudSpace}.path(served{"cloudspaces", "get"})
	for _, subresource := range []string{"status", "scale", "kubeconfig", "finalize", "one/two"} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
			request := client.Verb(method).AbsPath(one+"/"+subresource).SetHeader("Content-Type", "application/json").Body([]byte("{}"))
			if code, text := answer(t, request); code != want {
				t.Errorf("%s %s: the answer is %d, not %d: %.300s", method, subresource, code, want, text)
			}
		}
	}
}
