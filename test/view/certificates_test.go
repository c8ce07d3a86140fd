// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/internal/servingcert"
)

// keeper is what a replica keeps its certificate by.
func keeper(t *testing.T, r *replica) *servingcert.Keeper {
	t.Helper()
	typed, err := kubernetes.NewForConfig(adminConfig)
	if err != nil {
		t.Fatal(err)
	}
	dynamically, err := dynamic.NewForConfig(adminConfig)
	if err != nil {
		t.Fatal(err)
	}
	return &servingcert.Keeper{
		Client: typed, Dynamic: dynamically, Secret: types.NamespacedName{Namespace: "kubeopera-core", Name: "kubeopera-api-serving"},
		APIService: "v1alpha1.view.kubeopera.io", Names: []string{"kubeopera-api.kubeopera-core.svc"}, Folder: r.folder, Clock: clock.RealClock{},
	}
}

// Certificates that are due are renewed by whichever replica looks first, and no request fails meanwhile.
func TestCertificatesAreRenewedWhileRequestsGoOn(t *testing.T) {
	g := gomega.NewWithT(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kubeopera-api-serving", Namespace: "kubeopera-core"}}
	replace := func(data map[string][]byte) {
		g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(gomega.Succeed())
		secret.Data = data
		g.Expect(admin.Update(t.Context(), secret)).To(gomega.Succeed())
		for _, r := range replicas {
			g.Expect(keeper(t, r).Keep(t.Context())).To(gomega.Succeed())
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	asked, failed := &atomic.Int64{}, &atomic.Int64{}
	done := make(chan struct{})
	root := superAdmin().sees(t, cloudSpaces)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := root.List(ctx, metav1.ListOptions{}); err != nil && ctx.Err() == nil {
				t.Log(err)
				failed.Add(1)
			}
			asked.Add(1)
		}
	}()
	g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(gomega.Succeed())
	before := secret.Data["tls.crt"]
	due := map[string][]byte{"ca.crt": secret.Data["ca.crt"], "ca.key": secret.Data["ca.key"]}
	for range 3 {
		replace(due) // the certificate is not there any more: it is made anew, by the same authority
		front.lead() // and connections are made anew
		front.lead(replicas[0].address, replicas[1].address)
		sofar := asked.Load()
		eventually(t, func(g gomega.Gomega) { g.Expect(asked.Load()).To(gomega.BeNumerically(">", sofar+20)) })
	}
	stop()
	<-done
	g.Expect(admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(gomega.Succeed())
	g.Expect(secret.Data["tls.crt"]).NotTo(gomega.Equal(before))
	g.Expect(failed.Load()).To(gomega.BeNumerically("<=", 3), "of %d requests, those on connections that were cut", asked.Load())
}
