//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// outage bounds how long the API of a CloudSpace with several members may be away when one of each is killed: as long as
// the host takes to lead nobody to what is gone.
const outage = 15 * time.Second

// highAvailability kills one control plane and one member of etcd of the CloudSpace that has a hostname, at once.
func (h *host) highAvailability(t *testing.T) {
	g := NewWithT(t)
	inside := h.byName(t)
	kept := keepsake(hosted)
	g.Expect(inside.Create(t.Context(), kept)).To(Succeed())
	servers, members := h.podsOf(t, hosted, "vcluster"), h.podsOf(t, hosted, "vcluster-etcd")
	g.Expect(servers).To(HaveLen(2))
	g.Expect(members).To(HaveLen(3))
	g.Expect(h.reasonOf(t, hosted, "ControlPlaneReady")()).To(Equal("Succeeded"))

	watching, stop := context.WithCancel(t.Context())
	gaps := make(chan time.Duration, 1)
	go func() { gaps <- longestGap(watching, inside.config) }()
	for _, killed := range []string{anyOf(servers), anyOf(members)} {
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = "vcluster-"+hosted, killed
		g.Expect(h.WithWatch.Delete(t.Context(), pod, client.GracePeriodSeconds(0))).To(Succeed())
	}
	g.Eventually(h.reasonOf(t, hosted, "ControlPlaneReady"), short, interval).Should(Equal("RedundancyLost"))
	g.Eventually(h.reasonOf(t, hosted, "ControlPlaneReady"), provisioning, interval).Should(Equal("Succeeded"))
	stop()
	gap := <-gaps
	t.Logf("the API was away for %s at most", gap.Round(time.Millisecond))
	g.Expect(gap).To(BeNumerically("<", outage))

	g.Expect(h.podsOf(t, hosted, "vcluster")).To(And(HaveLen(2), Not(Equal(servers))))
	g.Expect(h.podsOf(t, hosted, "vcluster-etcd")).To(And(HaveLen(3), Not(Equal(members))))
	g.Expect(inside.Get(t.Context(), client.ObjectKeyFromObject(kept), kept)).To(Succeed())
	g.Expect(kept.Data).To(Equal(keepsake(hosted).Data))
	space := h.cloudSpace(t.Context(), g, hosted, "default")
	g.Expect(phasesOf(space)).To(HaveExactElements("Pending", "Provisioning", "InstallingFlux", "Active"))
	h.removeTenants(t, balanced, hosted)
}

// longestGap asks again and again, each time over a new connection, until the context ends, and gives the longest time without an answer.
func longestGap(ctx context.Context, config *rest.Config) time.Duration {
	last, longest := time.Now(), time.Duration(0)
	for ctx.Err() == nil {
		if answers(ctx, config) {
			longest, last = max(longest, time.Since(last)), time.Now()
		}
		select {
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
	return max(longest, time.Since(last))
}

func answers(ctx context.Context, config *rest.Config) bool {
	tls, err := rest.TLSConfigFor(config)
	if err != nil {
		return false
	}
	asking := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{TLSClientConfig: tls, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s/api/v1/namespaces/default", os.Getenv("HOSTCLUSTER_REGISTRY_LOCAL")), http.NoBody)
	if err != nil {
		return false
	}
	response, err := asking.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// podsOf are the pods of a part of a control plane, by name.
func (h *host) podsOf(t *testing.T, id, part string) map[string]types.UID {
	t.Helper()
	g := NewWithT(t)
	var pods corev1.PodList
	g.Expect(h.WithWatch.List(t.Context(), &pods, client.InNamespace("vcluster-"+id), client.MatchingLabels{"app": part})).To(Succeed())
	found := map[string]types.UID{}
	for i := range pods.Items {
		found[pods.Items[i].Name] = pods.Items[i].UID
	}
	return found
}

func anyOf(pods map[string]types.UID) string {
	for name := range pods {
		return name
	}
	return ""
}
