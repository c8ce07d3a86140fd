// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func tenantQuota(id string, hard map[string]string) *v1alpha1.TenantQuota {
	return &v1alpha1.TenantQuota{ObjectMeta: named("", id), Spec: v1alpha1.TenantQuotaSpec{Hard: quota(hard)}}
}

// asking is for so much CPU, and for little else.
func asking(cpu string) func(*v1alpha1.CloudSpace) {
	return func(c *v1alpha1.CloudSpace) { c.Spec.Resources.CPU = resource.MustParse(cpu) }
}

// withDefault has a default CloudSpace that asks for so much CPU.
func withDefault(cpu string) func(*v1alpha1.Tenant) {
	return func(o *v1alpha1.Tenant) {
		o.Spec.DefaultCloudSpace.Template.Spec.Resources.CPU = resource.MustParse(cpu)
	}
}

// reservations waits until a tenant's ledger has these, written as name and CPU, and no other.
func reservations(t *testing.T, id string, want ...string) *v1alpha1.TenantQuota {
	t.Helper()
	ledger := tenantQuota(id, nil)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(ledger), ledger)).To(gomega.Succeed())
		var got []string
		for _, r := range ledger.Status.Reservations {
			cpu := r.Amounts[v1alpha1.QuotaCPU]
			got = append(got, r.CloudSpace+" "+cpu.String())
		}
		g.Expect(got).To(gomega.ConsistOf(want))
	})
	return ledger
}

// sum watches, until the test ends, that neither what is reserved for a tenant nor what its host namespaces may use is ever more than so
// much CPU.
func sum(t *testing.T, id, most string) {
	t.Helper()
	limit, hosts := resource.MustParse(most), map[string]resource.Quantity{}
	follow(t, &v1alpha1.TenantQuotaList{}, func(e watch.Event) {
		ledger, ok := e.Object.(*v1alpha1.TenantQuota)
		if !ok || ledger.Name != id {
			return
		}
		reserved := resource.Quantity{}
		for _, r := range ledger.Status.Reservations {
			reserved.Add(r.Amounts[v1alpha1.QuotaCPU])
		}
		if reserved.Cmp(limit) > 0 {
			t.Errorf("%s of %s are reserved", reserved.String(), most)
		}
	})
	follow(t, &corev1.ResourceQuotaList{}, func(e watch.Event) {
		host, ok := e.Object.(*corev1.ResourceQuota)
		if !ok || host.Labels[v1alpha1.LabelTenant] != id || host.Labels[v1alpha1.LabelCloudSpace] == "" || host.Name != "cloudspace" {
			return
		}
		hosts[host.Namespace] = host.Spec.Hard[corev1.ResourceRequestsCPU]
		if e.Type == watch.Deleted {
			delete(hosts, host.Namespace)
		}
		all := resource.Quantity{}
		for _, cpu := range hosts {
			all.Add(cpu)
		}
		if all.Cmp(limit) > 0 {
			t.Errorf("host namespaces may use %s of %s", all.String(), most)
		}
	})
}

// follow sees every event of a kind until the test ends.
func follow(t *testing.T, list client.ObjectList, see func(watch.Event)) {
	t.Helper()
	ctx, stop := context.WithCancel(backgroundContext)
	events, err := everyEvent(ctx, list)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range events.ResultChan() {
			if e.Type == watch.Error {
				t.Errorf("not every event was seen: %v", apierrors.FromObject(e.Object))
			}
			see(e)
		}
		if ctx.Err() == nil {
			t.Error("not every event was seen")
		}
	}()
	t.Cleanup(func() {
		stop()
		events.Stop()
		<-done
	})
}

// However many create at once, and whatever happens to the operator meanwhile, grants are never more than the quota; and in the end all of
// it is used.
func TestManyAtTheEdgeOfAQuota(t *testing.T) {
	tests := map[string]struct {
		id        string
		clients   int
		processes []*process
	}{
		"one operator":                   {id: "one", clients: 100, processes: []*process{{}}},
		"two that both think they lead":  {id: "two", clients: 20, processes: []*process{{}, {}}},
		"caches that are behind":         {id: "behind", clients: 20, processes: []*process{{view: view{lag: 300 * time.Millisecond}}}},
		"one that ends again and again":  {id: "mortal", clients: 20, processes: []*process{mortal(7)}},
		"two, behind, that end by turns": {id: "worst", clients: 20, processes: []*process{mortal(5), {view: view{lag: 200 * time.Millisecond}}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := ofFaults + "edge-" + tt.id
			for _, p := range tt.processes {
				p.id = id
				startProcess(t, p)
			}
			sum(t, id, "40")
			create(t, tenantQuota(id, map[string]string{"cpu": "40", "cloudspaces": "200"}))
			object := create(t, tenant(id, withDefault("39600m")))
			reach(t, object, "Ready")
			createAtOnce(t, id, tt.clients)
			allReserved(t, id, tt.clients-4)

			// Half of those that wait fit beside a smaller one.
			room := 40000 - 100*(4+tt.clients/2)
			merge(t, cloudSpace(id, "default"), fmt.Sprintf(`{"spec":{"resources":{"cpu":"%dm"}}}`, room))
			allReserved(t, id, tt.clients-4-tt.clients/2)
			remove(t, object)
			reservations(t, id)
		})
	}
}

// mortal is an operator that ends at every nth write of a ledger, by turns before and after it.
func mortal(every int) *process {
	p, mu, writes := &process{}, sync.Mutex{}, 0
	p.intercept = func(made call, send func() (*http.Response, error)) (*http.Response, error) {
		if made.resource != "tenantquotas/status" {
			return send()
		}
		mu.Lock()
		writes++
		now := writes
		mu.Unlock()
		switch now % (2 * every) {
		case 0:
			return blows["before"](p, send)
		case every:
			return blows["after"](p, send)
		default:
			return send()
		}
	}
	return p
}

func createAtOnce(t *testing.T, id string, clients int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			if err := createAsOneOfMany(t.Context(), cloudSpace(id, fmt.Sprintf("c%d", i), asking("100m"))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// createAsOneOfMany tries again, as clients do, when Kubernetes could not count so many at once.
func createAsOneOfMany(ctx context.Context, object *v1alpha1.CloudSpace) error {
	patience := wait.Backoff{Steps: 14, Duration: 20 * time.Millisecond, Factor: 1.5, Jitter: 0.5}
	return retry.OnError(patience, apierrors.IsConflict, func() error { return api.Create(ctx, object) })
}

// allReserved waits until all 40 CPUs are reserved and so many CloudSpaces wait, each saying so.
func allReserved(t *testing.T, id string, waiting int) {
	t.Helper()
	ledger := tenantQuota(id, nil)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(ledger), ledger)).To(gomega.Succeed())
		g.Expect(ledger.Status.Usage).To(gomega.HaveKeyWithValue(v1alpha1.QuotaCPU, "40/40"))
		g.Expect(ledger.Status.WaitingCount).To(gomega.BeEquivalentTo(waiting))
		list, pending := &v1alpha1.CloudSpaceList{}, 0
		g.Expect(api.List(t.Context(), list, client.InNamespace("tenant-"+id))).To(gomega.Succeed())
		for i := range list.Items {
			if list.Items[i].Status.Phase == v1alpha1.CloudSpacePending {
				pending++
			}
		}
		g.Expect(pending).To(gomega.Equal(waiting))
	})
}

func TestACloudSpaceWaitsForRoomAndGoesOnByItself(t *testing.T) {
	t.Parallel()
	const id = "quota-room"
	create(t, tenantQuota(id, map[string]string{"cpu": "5", "cloudspaces": "3"}))
	reach(t, create(t, tenant(id)), "Ready")
	small := reach(t, create(t, cloudSpace(id, "small")), "Active")
	big := create(t, cloudSpace(id, "big", asking("3")))
	says(t, big, "QuotaReserved False QuotaExhausted", "missing is cpu 2")
	reach(t, big, "Pending")
	if meta := get(t, namespace("tenant-"+id)); meta.UID == "" {
		t.Fatal("the tenant's namespace has no UID")
	}
	if err := api.Get(t.Context(), client.ObjectKey{Name: "vcluster-" + id + "--big"}, &corev1.Namespace{}); err == nil {
		t.Error("a host namespace was made without a reservation")
	}
	ledger := reservations(t, id, "default 2", "small 2")
	if len(ledger.Status.Waiting) != 1 || ledger.Status.Waiting[0].CloudSpace != "big" {
		t.Errorf("waiting are %+v, want big alone", ledger.Status.Waiting)
	}
	remove(t, small)
	reach(t, big, "Active")
	reservations(t, id, "default 2", "big 3")
}

func TestMoreIsReservedFirstAndLessIsGivenBackLast(t *testing.T) {
	t.Parallel()
	const id = "quota-resize"
	sum(t, id, "6")
	create(t, tenantQuota(id, map[string]string{"cpu": "6"}))
	reach(t, create(t, tenant(id)), "Ready")
	space := reach(t, create(t, cloudSpace(id, "dev")), "Active")

	merge(t, space, `{"spec":{"resources":{"cpu":"5"}}}`)
	says(t, space, "QuotaReserved False QuotaExhausted", "missing is cpu 1")
	// It goes on with what it has.
	reach(t, space, "Active")
	hostCPU(t, "vcluster-"+id+"--dev", "2")
	merge(t, space, `{"spec":{"resources":{"cpu":"4"}}}`)
	says(t, space, "QuotaReserved True Succeeded", "")
	reservations(t, id, "default 2", "dev 4")
	hostCPU(t, "vcluster-"+id+"--dev", "4")

	// Until Kubernetes enforces the lower quota, what it allowed before is not given to others.
	theStandIn.behave("cloudspace.vcluster-"+id+"--dev", behaviour{hang: true})
	merge(t, space, `{"spec":{"resources":{"cpu":"2"}}}`)
	other := create(t, cloudSpace(id, "other"))
	says(t, other, "QuotaReserved False QuotaExhausted", "missing is cpu 2")
	hostCPU(t, "vcluster-"+id+"--dev", "2")
	reservations(t, id, "default 2", "dev 4")
	theStandIn.behave("cloudspace.vcluster-"+id+"--dev", behaviour{})
	reservations(t, id, "default 2", "dev 2", "other 2")
	reach(t, other, "Active")
}

// A tenant that lowers a CloudSpace and raises it again, at the very moment when what it gave up is written down as another's, gets no more
// for it: the host namespace takes up only what was counted for the spec that asks for it.
func TestWhatIsGivenBackIsNotTakenUpAgainMeanwhile(t *testing.T) {
	t.Parallel()
	const id = ofFaults + "regret"
	var lowered atomic.Bool
	p := &process{id: id}
	p.intercept = func(made call, send func() (*http.Response, error)) (*http.Response, error) {
		if made.resource == "tenantquotas/status" && lowered.CompareAndSwap(true, false) {
			space := cloudSpace(id, "dev")
			if err := api.Patch(backgroundContext, space, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"cpu":"4"}}}`))); err != nil {
				t.Error(err)
			}
			gomega.NewWithT(t).Eventually(func() int64 {
				_ = api.Get(backgroundContext, client.ObjectKeyFromObject(space), space)
				return space.Status.ObservedGeneration
			}).WithTimeout(backgroundTimeout).Should(gomega.Equal(space.Generation), "the spec that asks for more was not looked at")
		}
		return send()
	}
	startProcess(t, p)
	sum(t, id, "6")
	create(t, tenantQuota(id, map[string]string{"cpu": "6"}))
	object := reach(t, create(t, tenant(id)), "Ready")
	space := reach(t, create(t, cloudSpace(id, "dev", asking("4"))), "Active")
	other := create(t, cloudSpace(id, "other"))
	says(t, other, "QuotaReserved False QuotaExhausted", "missing is cpu 2")
	lowered.Store(true)
	merge(t, space, `{"spec":{"resources":{"cpu":"2"}}}`)
	reach(t, other, "Active")
	reservations(t, id, "default 2", "dev 2", "other 2")
	says(t, space, "QuotaReserved False QuotaExhausted", "missing is cpu 2")
	remove(t, object)
}

// One object tells a tenant what it may use: whoever makes or changes the TenantQuota, and whatever is reserved.
func TestATenantTellsTheSumsOfItsLedger(t *testing.T) {
	t.Parallel()
	const id = "quota-told"
	quota := create(t, tenantQuota(id, map[string]string{"cpu": "6"}))
	object := reach(t, create(t, tenant(id)), "Ready")
	tells(t, object, "6 2 4")
	space := create(t, cloudSpace(id, "dev", asking("3")))
	tells(t, object, "6 5 1")
	merge(t, quota, `{"spec":{"hard":{"cpu":"4"}}}`)
	tells(t, object, "4 5 0")
	merge(t, quota, `{"spec":{"hard":{"cpu":"8000m"}}}`)
	tells(t, object, "8 5 3")
	remove(t, space)
	tells(t, object, "8 2 6")
	// The platform's default takes its place. Here it has no limits.
	if err := api.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	tells(t, object, "- 2 -")
	// A CloudSpace that is protected keeps the Tenant from going: what the others give back is told meanwhile.
	kept := create(t, cloudSpace(id, "kept", asking("3"), func(c *v1alpha1.CloudSpace) { c.Spec.DeletionProtection = true }))
	tells(t, object, "- 5 -")
	if err := api.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	tells(t, object, "- 3 -")
	merge(t, kept, `{"spec":{"deletionProtection":false}}`)
	gone(t, object)
}

// tells waits until the status of a Tenant has so much CPU as hard, reserved and free; a dash is for none.
func tells(t *testing.T, object *v1alpha1.Tenant, want string) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		var got []string
		sums := get(t, object).Status.Quota
		for _, amounts := range []v1alpha1.QuotaAmounts{sums.Hard, sums.Reserved, sums.Free} {
			cpu, named := amounts[v1alpha1.QuotaCPU]
			if !named {
				got = append(got, "-")
				continue
			}
			got = append(got, cpu.String())
		}
		g.Expect(strings.Join(got, " ")).To(gomega.Equal(want))
	})
}

func hostCPU(t *testing.T, hostNamespace, want string) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		host := &corev1.ResourceQuota{}
		g.Expect(api.Get(t.Context(), client.ObjectKey{Namespace: hostNamespace, Name: "cloudspace"}, host)).To(gomega.Succeed())
		cpu := host.Spec.Hard[corev1.ResourceRequestsCPU]
		g.Expect(cpu.String()).To(gomega.Equal(want))
	})
}

func TestALostLedgerIsMadeAnewWithWhatRunsFirst(t *testing.T) {
	t.Parallel()
	const id = "quota-lost"
	create(t, tenantQuota(id, map[string]string{"cpu": "5"}))
	object := reach(t, create(t, tenant(id)), "Ready")
	waits := create(t, cloudSpace(id, "waits", asking("4")))
	says(t, waits, "QuotaReserved False QuotaExhausted", "missing is cpu 1")
	young := reach(t, create(t, cloudSpace(id, "young")), "Active")
	before := get(t, young).Status.Timeline
	if err := api.Delete(t.Context(), tenantQuota(id, nil)); err != nil {
		t.Fatal(err)
	}
	// The platform's default takes the place of the one that was deleted. Here it has no limits.
	reservations(t, id, "default 2", "young 2", "waits 4")
	reach(t, waits, "Active")
	if after := get(t, young).Status.Timeline; len(after) != len(before) {
		t.Errorf("one that ran went through phases anew: %+v", after)
	}
	own := get(t, tenantQuota(id, nil))
	merge(t, own, `{"spec":{"hard":{"cpu":"1"}}}`)
	says(t, own, "OverCommitted True HardLowered", "cpu 7")
	reservations(t, id, "default 2", "young 2", "waits 4")
	if err := api.Status().Patch(t.Context(), own, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"reservations":null}}`))); err != nil {
		t.Fatal(err)
	}
	reservations(t, id, "default 2", "young 2", "waits 4")
	for _, space := range []*v1alpha1.CloudSpace{young, waits} {
		reach(t, space, "Active")
	}
	// What an administrator made of the default is theirs, and outlives the Tenant.
	remove(t, object)
	if kept := get(t, own); len(kept.Spec.Hard) != 1 {
		t.Errorf("the administrators' quota is %v", kept.Spec.Hard)
	}
	remove(t, own)
}

func TestAReservationEndsOnlyWithTheHostNamespace(t *testing.T) {
	t.Parallel()
	const id = "quota-held"
	create(t, tenantQuota(id, map[string]string{"cpu": "4"}))
	reach(t, create(t, tenant(id)), "Ready")
	space := reach(t, create(t, cloudSpace(id, "dev")), "Active")
	theStandIn.behave("vcluster-"+id+"--dev", behaviour{keep: true})
	if err := api.Delete(t.Context(), space); err != nil {
		t.Fatal(err)
	}
	says(t, space, "Ready False Deleting", "host namespace")
	// Somebody takes the finalizer off. What is left of it is reserved all the same.
	merge(t, space, `{"metadata":{"finalizers":null}}`)
	gone(t, space)
	again := create(t, cloudSpace(id, "dev"))
	says(t, again, "QuotaReserved False QuotaExhausted", "missing is cpu 2")
	reservations(t, id, "default 2", "dev 2")
	theStandIn.behave("vcluster-"+id+"--dev", behaviour{})
	reach(t, again, "Active")
	reservations(t, id, "default 2", "dev 2")
}

// Whoever asks for whatever at the same time, and changes their mind: the sum is kept, and in the end all have what they asked for last.
func TestResizingAllAtOnceNeverOvershoots(t *testing.T) {
	t.Parallel()
	const id, spaces, times = "quota-all-at-once", 6, 12
	sum(t, id, "20")
	create(t, tenantQuota(id, map[string]string{"cpu": "20"}))
	reach(t, create(t, tenant(id)), "Ready")
	for i := range spaces {
		reach(t, create(t, cloudSpace(id, fmt.Sprintf("c%d", i))), "Active")
	}
	var all sync.WaitGroup
	for i := range spaces {
		random := rand.New(rand.NewPCG(uint64(i), 1))
		all.Go(func() {
			for range times {
				resize := fmt.Sprintf(`{"spec":{"resources":{"cpu":"%d"}}}`, 2+random.IntN(8))
				if err := api.Patch(t.Context(), cloudSpace(id, fmt.Sprintf("c%d", i)), client.RawPatch(types.MergePatchType, []byte(resize))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	want := []string{"default 2"}
	for i := range spaces {
		merge(t, cloudSpace(id, fmt.Sprintf("c%d", i)), `{"spec":{"resources":{"cpu":"3"}}}`)
		want = append(want, fmt.Sprintf("c%d 3", i))
	}
	reservations(t, id, want...)
	for i := range spaces {
		hostCPU(t, fmt.Sprintf("vcluster-%s--c%d", id, i), "3")
	}
}
