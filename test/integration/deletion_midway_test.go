// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Tenant may be deleted at any moment of its way up: while a request is on its way, or just answered. Nothing is made after that,
// and nothing is left.
func TestDeletingAtEveryRequestLeavesNothing(t *testing.T) {
	t.Parallel()
	for i, m := range undisturbed(t).up {
		// How often a status is written depends on how fast the rest is.
		if strings.HasSuffix(m.resource, "/status") && m.nth > 1 {
			continue
		}
		for _, when := range []string{"before", "after"} {
			t.Run(when+" "+m.String(), func(t *testing.T) {
				t.Parallel()
				id := fmt.Sprintf("%sdel-%s-%02d", ofFaults, when, i)
				object := tenant(id)
				d := startDealer(t, id, map[moment]blow{m: func(_ *process, send func() (*http.Response, error)) (*http.Response, error) {
					if when == "after" {
						answer, err := send()
						return answer, deleteNow(object, err)
					}
					if err := deleteNow(object, nil); err != nil {
						return nil, err
					}
					return send()
				}})
				create(t, object)
				eventually(t, func(g gomega.Gomega) { g.Expect(d.left()).To(gomega.BeEmpty(), "moments that have not come") })
				gone(t, tenant(id))
				if found := leftovers(t, id); len(found) > 0 {
					t.Errorf("left are %s", strings.Join(found, ", "))
				}
			})
		}
	}
}

// deleteNow deletes an object from within a request of the operator, unless something went wrong before.
func deleteNow(object client.Object, err error) error {
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(api.Delete(backgroundContext, object))
}

// A Tenant that is deleted and made again at once, wherever the first one stood, gets everything anew.
func TestRecreatingAtOnceTakesNothingOver(t *testing.T) {
	t.Parallel()
	const id = ofFaults + "again"
	p := startProcess(t, &process{id: id})
	seen := map[types.UID]string{}
	for _, condition := range []string{"", "NamespaceReady True Succeeded", "CloudSpaceReady True Succeeded", "Ready True Provisioned", ""} {
		object := tenant(id)
		eventually(t, func(g gomega.Gomega) { g.Expect(api.Create(t.Context(), object)).To(gomega.Succeed()) })
		if condition != "" {
			says(t, object, condition, "")
		}
		rememberAll(t, id, seen)
		if err := api.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func(g gomega.Gomega) { g.Expect(api.Create(t.Context(), tenant(id))).To(gomega.Succeed()) })
	object := reach(t, tenant(id), "Ready")
	owners := []string{string(object.UID), string(get(t, cloudSpace(id, "default")).UID)}
	for _, made := range objectsOf(t, id) {
		if what, ok := seen[made.GetUID()]; ok {
			t.Errorf("%s is one of before", what)
		}
		if owner := made.GetLabels()["tenancy.kubeopera.io/owner-uid"]; owner != "" && owner != owners[0] && owner != owners[1] {
			t.Errorf("%T %s was made for another owner", made, made.GetName())
		}
	}
	for _, c := range p.calls.since(0) {
		if c.verb == "update" && c.about(id) {
			t.Errorf("something was altered: %v", c)
		}
	}
	remove(t, object)
}

func rememberAll(t *testing.T, id string, seen map[types.UID]string) {
	t.Helper()
	for _, object := range objectsOf(t, id) {
		seen[object.GetUID()] = kindOf(object) + " " + object.GetName()
	}
}
