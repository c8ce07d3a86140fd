// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// watchesOpen counts the watches that replicas serve.
func watchesOpen(g gomega.Gomega) int {
	stacks := &bytes.Buffer{}
	g.Expect(pprof.Lookup("goroutine").WriteTo(stacks, 2)).To(gomega.Succeed())
	return strings.Count(stacks.String(), "created by github.com/tantilium/cloud-runner/apiserver/registry.newShown")
}

// opened begins a watch of which nothing is read.
func opened(ctx context.Context, t *testing.T, caller person, accept string) (code int, body io.Reader) {
	t.Helper()
	client, err := rest.HTTPClientFor(caller.config())
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address("/apis/view.kubeopera.io/v1alpha1/cloudspaces?watch=1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer.StatusCode, answer.Body
}

// A client that does not read holds up nobody else, and finds nothing of what happened after it lost the right to see it. When clients are
// gone, nothing of their watches is left.
func TestAClientThatDoesNotRead(t *testing.T) {
	g := gomega.NewWithT(t)
	tenant := newTenant(t, "slow", member("slow-alice", tenancyv1alpha1.MemberViewer))
	o := newCloudSpace(t, "slow", "one")
	alice := known(t, customer("slow-alice", "slow"))
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	code, slow := opened(ctx, t, alice, "application/json")
	g.Expect(code).To(gomega.Equal(http.StatusOK))
	code, _ = opened(ctx, t, alice, "application/yaml")
	g.Expect(code).To(gomega.Equal(http.StatusNotAcceptable))
	code, _ = opened(ctx, t, alice, "application/json;as=Table;g=meta.k8s.io;v=v1")
	g.Expect(code).To(gomega.Equal(http.StatusOK))

	for range 60 {
		o.Annotations["example.com/large"] = strings.Repeat(string('a'+rune(o.Generation%26)), 240<<10)
		o.Spec.Suspend = !o.Spec.Suspend
		g.Expect(admin.Update(t.Context(), o)).To(gomega.Succeed())
	}
	_, fast := opened(ctx, t, alice, "application/json")
	_, err := fast.Read(make([]byte, 1))
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(watchesOpen(g)).To(gomega.Equal(3))

	tenant.Spec.Members = nil
	g.Expect(admin.Update(t.Context(), tenant)).To(gomega.Succeed())
	rest, err := io.ReadAll(fast)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(string(rest)).To(gomega.ContainSubstring("the membership has changed"))
	o.Spec.DisplayName = "After"
	g.Expect(admin.Update(t.Context(), o)).To(gomega.Succeed())
	late, err := io.ReadAll(slow)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(len(late)).To(gomega.BeNumerically(">", 1<<20))
	g.Expect(bytes.Contains(late, []byte("After"))).To(gomega.BeFalse())
	g.Expect(bytes.Contains(late, []byte("the membership has changed"))).To(gomega.BeTrue())

	leave()
	eventually(t, func(g gomega.Gomega) { g.Expect(watchesOpen(g)).To(gomega.BeZero()) })
}
