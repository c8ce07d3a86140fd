// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
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

// requests are asked one after the other, until end.
type requests struct {
	asked, failed atomic.Int64
	end           func()
}

func askOn(t *testing.T) *requests {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r, done := &requests{}, make(chan struct{})
	root := superAdmin().sees(t, cloudSpaces)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if _, err := root.List(ctx, metav1.ListOptions{}); err != nil && ctx.Err() == nil {
				t.Log(err)
				r.failed.Add(1)
			}
			r.asked.Add(1)
		}
	}()
	r.end = sync.OnceFunc(func() {
		stop()
		<-done
	})
	t.Cleanup(r.end)
	return r
}

// more waits until as many again were asked, on connections that are new.
func (r *requests) more(t *testing.T) {
	t.Helper()
	front.lead()
	front.lead(replicas[0].address, replicas[1].address)
	before := r.asked.Load()
	eventually(t, func(g gomega.Gomega) { g.Expect(r.asked.Load()).To(gomega.BeNumerically(">", before+20)) })
}

func servingSecret(t *testing.T) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kubeopera-api-serving", Namespace: "kubeopera-core"}}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// keepsAt has replicas look at their certificates, with a clock that shows a time.
func keepsAt(t *testing.T, at time.Time, looking ...*replica) {
	t.Helper()
	for _, r := range looking {
		k := keeper(t, r)
		k.Clock = clocktesting.NewFakePassiveClock(at)
		if err := k.Keep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// A certificate that is lost is made anew, and no request fails but those on connections that are cut.
func TestCertificatesAreRenewedWhileRequestsGoOn(t *testing.T) {
	g := gomega.NewWithT(t)
	asking := askOn(t)
	before := servingSecret(t).Data["tls.crt"]
	for range 3 {
		secret := servingSecret(t)
		secret.Data = map[string][]byte{"ca.crt": secret.Data["ca.crt"], "ca.key": secret.Data["ca.key"]}
		g.Expect(admin.Update(t.Context(), secret)).To(gomega.Succeed())
		keepsAt(t, time.Now(), replicas...)
		asking.more(t)
	}
	asking.end()
	g.Expect(servingSecret(t).Data["tls.crt"]).NotTo(gomega.Equal(before))
	g.Expect(asking.failed.Load()).To(gomega.BeNumerically("<=", 3), "of %d requests, those on connections that were cut", asking.asked.Load())
}

// An authority that comes to its end gives way to another, and what it signed to what that one signed, on one replica after the other.
func TestAnAuthorityGivesWayWhileRequestsGoOn(t *testing.T) {
	const day = 24 * time.Hour
	g, now := gomega.NewWithT(t), time.Now()
	// The authority has been due for an hour, the certificate is since just now.
	data := map[string][]byte{}
	for _, at := range []time.Duration{4*365*day + time.Hour, 60*day + time.Hour} {
		var err error
		data, _, err = servingcert.Next(data, []string{"kubeopera-api.kubeopera-core.svc"}, now.Add(-at))
		g.Expect(err).NotTo(gomega.HaveOccurred())
	}
	secret := servingSecret(t)
	secret.Data = data
	g.Expect(admin.Update(t.Context(), secret)).To(gomega.Succeed())
	keepsAt(t, now.Add(-20*time.Minute), replicas...)
	both := servingSecret(t).Data
	g.Expect(both["tls.crt"]).To(gomega.Equal(data["tls.crt"]), "the new authority is only made known")
	g.Expect(both["ca.key"]).NotTo(gomega.Equal(data["ca.key"]))
	eventually(t, func(g gomega.Gomega) {
		_, err := superAdmin().sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{})
		g.Expect(err).NotTo(gomega.HaveOccurred())
	})

	asking := askOn(t)
	asking.more(t)
	for _, r := range replicas {
		keepsAt(t, time.Now(), r)
		asking.more(t)
	}
	asking.end()
	g.Expect(servingSecret(t).Data["tls.crt"]).NotTo(gomega.Equal(both["tls.crt"]))
	g.Expect(asking.failed.Load()).To(gomega.BeNumerically("<=", 3), "of %d requests, those on connections that were cut", asking.asked.Load())
}

// A certificate that nobody renewed ends, and nothing is served with it any more. One look mends it.
func TestACertificateThatHasEndedIsMended(t *testing.T) {
	const leafLasts = 90 * 24 * time.Hour
	g := gomega.NewWithT(t)
	ask := func() error {
		_, err := superAdmin().sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{})
		return err
	}
	// A replica's own look, once a minute, may come in between: then again.
	eventually(t, func(g gomega.Gomega) {
		secret := servingSecret(t)
		secret.Data = nil
		g.Expect(admin.Update(t.Context(), secret)).To(gomega.Succeed())
		keepsAt(t, time.Now().Add(time.Second-leafLasts), replicas...)
		ended := servingSecret(t).Data["tls.crt"]
		g.Eventually(func(g gomega.Gomega) {
			front.lead()
			front.lead(replicas[0].address, replicas[1].address)
			g.Expect(apierrors.IsServiceUnavailable(ask())).To(gomega.BeTrue())
		}).WithTimeout(5 * time.Second).Should(gomega.Succeed())
		g.Expect(servingSecret(t).Data["tls.crt"]).To(gomega.Equal(ended))
	})
	keepsAt(t, time.Now(), replicas...)
	eventually(t, func(g gomega.Gomega) {
		front.lead()
		front.lead(replicas[0].address, replicas[1].address)
		for range 10 {
			g.Expect(ask()).To(gomega.Succeed())
		}
	})
	g.Expect(ask()).To(gomega.Succeed())
}
