// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/controllers"
	"github.com/tantilium/cloud-runner/controllers/cloudspace"
)

// manyCloudSpaces is more for make bench-restart.
var manyCloudSpaces = flag.Int("cloudspaces", 20, "how many CloudSpaces a new operator finds, in TestANewOperatorOfMany")

// What many CloudSpaces are called: names are as long for each, so that one can be written over into another.
const (
	manyID      = ofFaults + "many-%02d"
	manyName    = "c-%04d"
	manyPerTeam = 400
)

// defaultRate is how many requests a second an operator makes by default.
const defaultRate = 50

// many is an operator for all tenants of this test.
type many struct {
	calls callRecorder
	stop  context.CancelFunc
	done  chan error
}

// startMany starts one that makes so many requests a second at most; a negative rate has no bound.
func startMany(t *testing.T, rate float32) *many {
	t.Helper()
	m := &many{done: make(chan error, 1)}
	config := rest.CopyConfig(operatorConfig)
	config.QPS, config.Burst = rate, 2*defaultRate
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return m.calls.wrap(next) })
	options := controllers.CacheOptions(platform)
	options.NewInformer = informers(view{serves: func(object client.Object) bool {
		prefix, _, _ := strings.Cut(manyID, "%")
		return object.GetNamespace() == systemNamespace || (call{namespace: object.GetNamespace(), name: object.GetName()}).about(prefix)
	}})
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: controllers.Scheme(), Cache: options, MapperProvider: knownKinds,
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: controllerconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := controllers.Add(t.Context(), mgr, controllers.Options{
		Platform: patientPlatform(), Concurrency: 8, Flux: flux, Clock: clock.RealClock{}, Metrics: prometheus.NewRegistry(),
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(backgroundContext)
	m.stop = stop
	go func() {
		defer close(m.done)
		m.done <- mgr.Start(ctx)
	}()
	t.Cleanup(func() { m.end(t) })
	return m
}

func (m *many) end(t *testing.T) {
	t.Helper()
	m.stop()
	if err := <-m.done; err != nil {
		t.Errorf("the operator of many: %v", err)
	}
}

// A new operator that finds many CloudSpaces, all as they should be, asks nothing about them and writes nothing, and what changes
// with its start, or meanwhile, does not wait until it has looked at all of them.
func TestANewOperatorOfMany(t *testing.T) {
	count := *manyCloudSpaces
	first := startMany(t, -1)
	tenants := (count + manyPerTeam - 1) / manyPerTeam
	for i := range tenants {
		reach(t, create(t, tenant(fmt.Sprintf(manyID, i))), "Ready")
	}
	reach(t, create(t, cloudSpace(fmt.Sprintf(manyID, 0), fmt.Sprintf(manyName, 0))), "Active")
	first.end(t)
	began := time.Now()
	writeOver(t, count)
	t.Logf("%d CloudSpaces made in %s", count, time.Since(began).Round(time.Second))

	// What is not quite as the operator would have made it is put right by the one before.
	second := startMany(t, -1)
	all := float64(count + tenants)
	goneThroughAll(t, second, all)
	second.end(t)

	before, asked := memory(), flux.total()
	began = time.Now()
	third := startMany(t, defaultRate)
	last := cloudSpace(fmt.Sprintf(manyID, tenants-1), fmt.Sprintf(manyName, count-1))
	handled := resized(t, last)
	patiently(t, func(g gomega.Gomega) { g.Expect(float64(flux.total() - asked)).To(gomega.BeNumerically(">=", all/10)) })
	another := cloudSpace(fmt.Sprintf(manyID, 0), fmt.Sprintf(manyName, 1))
	meanwhile := resized(t, another)
	patiently(t, func(g gomega.Gomega) { g.Expect(float64(flux.total() - asked)).To(gomega.BeNumerically(">=", all)) })
	t.Logf("a change that came with the start was handled after %s, one that came meanwhile after %s; all were looked at after %s",
		handled.Round(10*time.Millisecond), meanwhile.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
	says(t, last, "Ready True Provisioned", "")
	says(t, another, "Ready True Provisioned", "")
	t.Logf("memory of the operator: %d MiB", (memory()-before)>>20)
	counts := map[string]int{}
	for _, c := range third.calls.since(0) {
		counts[c.verb+" "+c.resource]++
	}
	for _, row := range sorted(counts) {
		t.Logf("%6d %s", counts[row], row)
		allowed := map[string]int{
			"update resourcequotas": 6, "patch tenantquotas/status": 2, "patch cloudspaces/status": 6, "patch tenants/status": 4,
		}
		if verb, resource, _ := strings.Cut(row, " "); (call{verb: verb}).writes() && resource != "events" && counts[row] > allowed[row] {
			t.Errorf("the new operator asked %d times to %s, want what the two changes need: %d at most", counts[row], row, allowed[row])
		}
	}
}

// resized changes what a CloudSpace asks for, and gives how long it takes until it has it.
func resized(t *testing.T, object *v1alpha1.CloudSpace) time.Duration {
	t.Helper()
	began := time.Now()
	merge(t, object, `{"spec":{"resources":{"pods":77}}}`)
	id := strings.TrimPrefix(object.Namespace, "tenant-")
	quota := &corev1.ResourceQuota{ObjectMeta: named("vcluster-"+id+"--"+object.Name, "cloudspace")}
	patiently(t, func(g gomega.Gomega) { g.Expect(get(t, quota).Spec.Hard.Pods().Value()).To(gomega.Equal(int64(77))) })
	return time.Since(began)
}

// goneThroughAll waits until an operator has asked about Flux in each CloudSpace, and then writes no more.
func goneThroughAll(t *testing.T, m *many, all float64) {
	t.Helper()
	asked := flux.total()
	patiently(t, func(g gomega.Gomega) { g.Expect(float64(flux.total() - asked)).To(gomega.BeNumerically(">=", all)) })
	patiently(t, func(g gomega.Gomega) {
		mark := m.calls.mark()
		g.Consistently(func() bool {
			return slices.ContainsFunc(m.calls.since(mark), func(c call) bool { return c.writes() && !c.standing() })
		}).WithTimeout(2 * time.Second).WithPolling(100 * time.Millisecond).Should(gomega.BeFalse())
	})
}

// patiently waits for what takes the longer the more there are.
func patiently(t *testing.T, check func(gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(check).WithTimeout(time.Minute + time.Duration(*manyCloudSpaces)*100*time.Millisecond).WithPolling(20 * time.Millisecond).Should(gomega.Succeed())
}

// memory is what is in use, after what is not has been collected.
func memory() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}

// writeOver makes copies of the first CloudSpace with all that stands of it, finished, under other names.
func writeOver(t *testing.T, count int) {
	t.Helper()
	id, name := fmt.Sprintf(manyID, 0), fmt.Sprintf(manyName, 0)
	pattern := get(t, cloudSpace(id, name))
	// A copy's parts are others, which Flux has not looked at: with a record of the first one's it would be asked to, ten seconds later.
	pattern.Status.Drift = v1alpha1.DriftStatus{}
	parts := objectsOf(t, id+"--"+name)
	slices.SortStableFunc(parts, func(a, b client.Object) int { return turnOf(a) - turnOf(b) })
	release := get(t, &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id+"--"+name)})
	var group errgroup.Group
	group.SetLimit(64)
	for i := 1; i < count; i++ {
		group.Go(func() error {
			toID, toName := fmt.Sprintf(manyID, i/manyPerTeam), fmt.Sprintf(manyName, i)
			object := cloudSpace(toID, toName)
			object.Spec, object.Finalizers = pattern.Spec, pattern.Finalizers
			if err := createAsOneOfMany(backgroundContext, object); err != nil {
				return err
			}
			rename := func(text []byte) []byte {
				text = bytes.ReplaceAll(text, []byte(id+"--"+name), []byte(toID+"--"+toName))
				text = bytes.ReplaceAll(text, []byte(string(pattern.UID)), []byte(string(object.UID)))
				// Labels have the parts by themselves.
				text = bytes.ReplaceAll(text, []byte(`"`+id+`"`), []byte(`"`+toID+`"`))
				return bytes.ReplaceAll(text, []byte(`"`+name+`"`), []byte(`"`+toName+`"`))
			}
			revision, err := revisionOf(release, rename)
			if err != nil {
				return err
			}
			renameAll := func(text []byte) []byte {
				return bytes.ReplaceAll(rename(text), []byte(release.Spec.CommonMetadata.Annotations[revisionAnnotation]), []byte(revision))
			}
			if err := copyStatus(pattern, object, renameAll); err != nil {
				return err
			}
			for _, release := range []string{toID + "--" + toName, toID + "--" + toName + "-flux"} {
				theStandIn.behave(release, behaviour{installed: true})
			}
			for _, part := range parts {
				if err := copyPart(part, renameAll); err != nil {
					return fmt.Errorf("%T %s: %w", part, part.GetName(), err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

const revisionAnnotation = "tenancy.kubeopera.io/revision"

// revisionOf is what the operator writes on the release of a control plane, and on all it installs, to tell what it is made of. A copy
// with another one would be changed by the operator, and all copies one after the other.
func revisionOf(release *helmv2.HelmRelease, rename func([]byte) []byte) (string, error) {
	text, err := json.Marshal(release)
	if err != nil {
		return "", err
	}
	renamed := &helmv2.HelmRelease{}
	if err := json.Unmarshal(rename(text), renamed); err != nil {
		return "", err
	}
	return cloudspace.Revision(renamed), nil
}

// turnOf orders what is copied: the stand-in makes what it does not find.
func turnOf(part client.Object) int {
	switch part.(type) {
	case *corev1.Namespace:
		return 0
	case *appsv1.Deployment, *appsv1.StatefulSet:
		return 2
	default:
		return 1
	}
}

// copyPart makes an object like another one, with its status.
func copyPart(part client.Object, rename func([]byte) []byte) error {
	made := fresh(part)
	if secret, ok := made.(*corev1.Secret); ok {
		for key, value := range secret.Data {
			secret.Data[key] = rename(value)
		}
	}
	if service, ok := made.(*corev1.Service); ok {
		service.Spec.ClusterIP, service.Spec.ClusterIPs = "", nil
	}
	made.SetUID("")
	made.SetResourceVersion("")
	made.SetManagedFields(nil)
	text, err := json.Marshal(made)
	if err != nil {
		return err
	}
	into := fresh(made)
	if err := json.Unmarshal(rename(text), into); err != nil {
		return err
	}
	if err := createPatiently(into); err != nil {
		return err
	}
	return copyStatus(part, into, rename)
}

// createPatiently tries again what the API server was too busy for. It may have been made all the same.
func createPatiently(object client.Object) error {
	patience := wait.Backoff{Steps: 5, Duration: time.Second, Factor: 2, Jitter: 0.5}
	busy := func(err error) bool {
		return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsConflict(err)
	}
	tried := false
	return retry.OnError(patience, busy, func() error {
		err := api.Create(backgroundContext, object)
		if tried && apierrors.IsAlreadyExists(err) {
			return nil
		}
		tried = true
		return err
	})
}

// copyStatus writes the status that another object has, if it has one.
func copyStatus(from, to client.Object, rename func([]byte) []byte) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	var status struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(text, &status); err != nil || len(status.Status) == 0 || string(status.Status) == "{}" {
		return err
	}
	patch, err := json.Marshal(map[string]json.RawMessage{"status": rename(status.Status)})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(api.Status().Patch(backgroundContext, to, client.RawPatch("application/merge-patch+json", patch)))
}
