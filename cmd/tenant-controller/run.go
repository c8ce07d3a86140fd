// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/controllers"
	"github.com/tantilium/cloud-runner/controllers/cloudspace"
	"github.com/tantilium/cloud-runner/internal/hostnetwork"
	"github.com/tantilium/cloud-runner/internal/names"
)

// networkLook is how often an operator looks whether the host's API servers and the resolver are where they were.
const networkLook = 30 * time.Second

// options are the flags of run.
type options struct {
	config         string
	leaderElection bool
	metricsAddress string
	probeAddress   string
	concurrency    int
	qps            float32
	burst          int
	verbosity      int8
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.config, "config", "/etc/tenant-controller/platform-config.yaml", "file with the PlatformConfig")
	flags.BoolVar(&o.leaderElection, "leader-elect", true, "work only while holding the lease; needed with more than one replica")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":8443", "address of the metrics, over HTTPS to callers whose token may read /metrics; 0 for none")
	flags.StringVar(&o.probeAddress, "probe-address", ":8081", "address of /healthz and /readyz")
	flags.IntVar(&o.concurrency, "concurrency", 8, "how many Tenants, and how many CloudSpaces, are worked on at a time")
	flags.Float32Var(&o.qps, "kube-api-qps", 50, "requests per second to the API server, in the long run")
	flags.IntVar(&o.burst, "kube-api-burst", 100, "requests to the API server at once")
	flags.Int8VarP(&o.verbosity, "verbosity", "v", 0, "log verbosity: 0 is information, 1 and more is debugging")
}

func run(ctx context.Context, o options) error {
	log := zap.New(zap.Level(zapcore.Level(-o.verbosity)))
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	platform, err := configv1alpha1.Load(o.config)
	if err != nil {
		return fmt.Errorf("the PlatformConfig is not usable: %w", err)
	}
	mgr, err := newManager(o, platform)
	if err != nil {
		return err
	}
	if err := completeNetwork(ctx, mgr, platform); err != nil {
		return err
	}
	if err := controllers.Add(ctx, mgr, controllers.Options{
		Platform: platform, Concurrency: o.concurrency, Flux: cloudspace.InsideFlux{}, Clock: clock.RealClock{}, Metrics: metrics.Registry,
	}); err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("caches", controllers.CachesSynced(mgr, platform)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// completeNetwork finds what the PlatformConfig leaves out of the host's network, and has that watched.
func completeNetwork(ctx context.Context, mgr ctrl.Manager, platform *configv1alpha1.PlatformConfig) (err error) {
	watch := hostnetwork.Watch{Reader: mgr.GetAPIReader(), Given: platform.Network, Every: networkLook}
	if platform.Network, err = hostnetwork.Complete(ctx, watch.Reader, platform.Network); err != nil {
		return err
	}
	watch.Found = platform.Network
	return mgr.Add(watch)
}

func newManager(o options, platform *configv1alpha1.PlatformConfig) (ctrl.Manager, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = o.qps, o.burst
	return ctrl.NewManager(config, ctrl.Options{
		Scheme:                        controllers.Scheme(),
		Cache:                         controllers.CacheOptions(platform),
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElection,
		LeaderElectionID:              "tenant-controller",
		LeaderElectionNamespace:       names.SystemNamespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics: metricsserver.Options{
			BindAddress:    o.metricsAddress,
			SecureServing:  true,
			FilterProvider: filters.WithAuthenticationAndAuthorization,
		},
	})
}
