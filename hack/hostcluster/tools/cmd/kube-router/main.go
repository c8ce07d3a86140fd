// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kube-router runs kube-router's network policy controller alone. Its router and service proxy would bring BGP and
// IPVS with them, which one node with kube-proxy does not use. Flags are upstream's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// heartbeats is the size of the channel on which the controller reports that it is alive, as upstream has it.
const heartbeats = 10

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		klog.ErrorS(err, "kube-router ended")
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config := options.NewKubeRouterConfig()
	config.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if config.HelpRequested {
		pflag.Usage()
		return nil
	}
	if err := setVerbosity(config.VLevel); err != nil {
		return err
	}
	rest, err := clientcmd.BuildConfigFromFlags(config.Master, config.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return enforce(ctx, config, client)
}

func setVerbosity(level string) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Set("v", level); err != nil {
		return fmt.Errorf("set verbosity: %w", err)
	}
	return nil
}

// enforce keeps the node's rules in step with the cluster's policies until ctx ends.
func enforce(ctx context.Context, config *options.KubeRouterConfig, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced, namespaces.HasSynced, policies.HasSynced) {
		return errors.New("stopped before the first list of pods, namespaces and policies came")
	}

	tables, sets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return fmt.Errorf("find iptables and ipset: %w", err)
	}
	var setsMutex sync.Mutex
	controller, err := netpol.NewNetworkPolicyController(client, config, pods, policies, namespaces, &setsMutex, tables, sets)
	if err != nil {
		return fmt.Errorf("make network policy controller: %w", err)
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods:       controller.PodEventHandler,
		namespaces: controller.NamespaceEventHandler,
		policies:   controller.NetworkPolicyEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	return runWithHealth(ctx, config, controller)
}

// runWithHealth runs the controller beside its health endpoint (--health-port): the driver waits for that one.
func runWithHealth(ctx context.Context, config *options.KubeRouterConfig, controller *netpol.NetworkPolicyController) error {
	health, err := healthcheck.NewHealthController(config)
	if err != nil {
		return fmt.Errorf("make health endpoint: %w", err)
	}
	beats := make(chan *healthcheck.ControllerHeartbeat, heartbeats)
	var running sync.WaitGroup
	running.Add(3)
	go health.RunServer(ctx.Done(), &running)
	health.SetAlive()
	go health.RunCheck(beats, ctx.Done(), &running)
	go controller.Run(beats, ctx.Done(), &running)
	running.Wait()
	return nil
}
