// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/controllers"
)

// ofFaults is what the ids of tenants begin with that have an operator of their own: the one of all others does not see them.
const ofFaults = "fault-"

// operatorConfig is how the operator reaches the API server: with the rights of its ServiceAccount.
var operatorConfig *rest.Config

// intercept decides what becomes of a request of an operator: send makes it.
type intercept func(made call, send func() (*http.Response, error)) (*http.Response, error)

// process is an operator that serves one tenant alone and can be ended at any moment, as by SIGKILL: from then on no request of its
// leaves it. The next one begins with nothing but what the API server has.
type process struct {
	id        string
	intercept intercept
	platform  *configv1alpha1.PlatformConfig
	// view is what its caches show of the tenant.
	view view

	calls callRecorder
	mu    sync.Mutex
	// kill ends the process that runs now.
	kill context.CancelFunc
	// stop ends it for good.
	stop context.CancelFunc
	done chan error
}

var errDead = errors.New("the operator has ended")

// startProcess starts an operator for a tenant. One that is killed is followed by the next; the last ends with the test.
func startProcess(t *testing.T, p *process) *process {
	t.Helper()
	if p.platform == nil {
		p.platform = patientPlatform()
	}
	// Not the context of the test: it would end before what is to be cleaned up.
	ctx, stop := context.WithCancel(backgroundContext)
	p.stop, p.done = stop, make(chan error, 1)
	go func() {
		defer close(p.done)
		p.done <- p.run(ctx)
	}()
	t.Cleanup(func() { p.end(t) })
	return p
}

// patientPlatform does not let go of what is taken down before its time, however slow the machine is: what is asked for is counted.
func patientPlatform() *configv1alpha1.PlatformConfig {
	patient := *platform
	patient.Deadlines.InnerRelease.Duration, patient.Deadlines.Release.Duration = time.Hour, time.Hour
	return &patient
}

// end ends a process for good and waits for it.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.stop()
	if err, running := <-p.done; running && err != nil {
		t.Errorf("the operator of %s: %v", p.id, err)
	}
}

// run has one process follow the other.
func (p *process) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := p.runOne(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *process) runOne(ctx context.Context) error {
	alive, kill := context.WithCancel(ctx)
	defer kill()
	p.mu.Lock()
	p.kill = kill
	p.mu.Unlock()
	mgr, err := p.newManager(alive)
	if err != nil {
		return err
	}
	if err := mgr.Start(alive); alive.Err() == nil {
		return fmt.Errorf("it ended by itself: %w", err)
	}
	return nil
}

// die ends the process that runs now, in the midst of a request of its.
func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kill()
}

func (p *process) newManager(alive context.Context) (ctrl.Manager, error) {
	config := rest.CopyConfig(operatorConfig)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return p.transport(alive, next) })
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:         controllers.Scheme(),
		Cache:          p.cacheOptions(),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     controllerconfig.Controller{SkipNameValidation: new(true)},
		MapperProvider: knownKinds,
	})
	if err != nil {
		return nil, err
	}
	return mgr, controllers.Add(alive, mgr, controllers.Options{
		Platform: p.platform, Concurrency: 2, Flux: flux, Clock: clock.RealClock{}, Metrics: prometheus.NewRegistry(),
	})
}

// transport lets nothing through once the process has ended, whatever still runs of it here.
func (p *process) transport(alive context.Context, next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(sent *http.Request) (*http.Response, error) {
		if alive.Err() != nil {
			return nil, errDead
		}
		made, err := p.calls.note(sent)
		if err != nil {
			return nil, err
		}
		send := func() (*http.Response, error) { return next.RoundTrip(sent) }
		if p.intercept == nil || made.standing() || !made.about(p.id) {
			return send()
		}
		return p.intercept(made, send)
	})
}

// cacheOptions are those of the operator, for the objects of one tenant.
func (p *process) cacheOptions() cache.Options {
	options := controllers.CacheOptions(platform)
	for object, by := range options.ByObject {
		if by.Label != nil {
			by.Label = labels.SelectorFromSet(labels.Set{v1alpha1.LabelTenant: p.id})
			options.ByObject[object] = by
		}
	}
	options.ByObject[&v1alpha1.Tenant{}] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", p.id)}
	options.ByObject[&v1alpha1.TenantQuota{}] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", p.id)}
	options.ByObject[&v1alpha1.CloudSpace{}] = cache.ByObject{Field: fields.OneTermEqualSelector("metadata.namespace", "tenant-"+p.id)}
	options.NewInformer = informers(p.view)
	return options
}

// servesNoFaults tells whether an object is of a tenant that the operator of all serves.
func servesNoFaults(object client.Object) bool {
	about := call{namespace: object.GetNamespace(), name: object.GetName()}
	return !about.about(ofFaults) && !strings.HasPrefix(object.GetLabels()[v1alpha1.LabelTenant], ofFaults)
}

// knownKinds saves each process from asking which kinds there are.
func knownKinds(*rest.Config, *http.Client) (meta.RESTMapper, error) { return api.RESTMapper(), nil }
