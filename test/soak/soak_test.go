//go:build soak

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/controllers"
)

const (
	// bound is how long anything may take that must come by itself, with parts of the platform killed meanwhile.
	bound = 12 * time.Minute
	// look is how often it is looked at.
	look = time.Second
	// tenants live at a time: what a machine of two cores can start at once.
	tenants = 3
)

// soak is one run of the test.
type soak struct {
	*testing.T
	api      client.Client
	typed    kubernetes.Interface
	deadline time.Time
	report   report
}

// The length of the run is SOAK_DURATION, an hour unless it says otherwise; SOAK_SEED makes the same choices again.
func TestSoak(t *testing.T) {
	s := connect(t)
	duration := setting(t, "SOAK_DURATION", time.Hour, time.ParseDuration)
	seed := setting(t, "SOAK_SEED", uint64(time.Now().Unix()), func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) })
	t.Logf("%s with SOAK_SEED=%d", duration, seed)
	s.deadline = time.Now().Add(duration)

	ctx, cancel := context.WithCancel(t.Context())
	var lives, background sync.WaitGroup
	background.Go(func() { s.makeTrouble(ctx, rand.New(rand.NewPCG(seed, 0))) })
	background.Go(func() { s.measureMemory(ctx) })
	for i := range tenants {
		lives.Go(func() { s.liveAndLive(ctx, fmt.Sprintf("soak-%d", i), rand.New(rand.NewPCG(seed, uint64(i)+1))) })
	}
	lives.Wait()
	cancel()
	background.Wait()

	s.nothingIsLeft()
	s.report.memoryIsFlat(t)
	t.Log(s.report.String())
}

func connect(t *testing.T) *soak {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" || os.Getenv("HOSTCLUSTER") == "" {
		t.Fatal("KUBECONFIG and HOSTCLUSTER are not set: run make soak")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	config.Timeout = 30 * time.Second
	api, err := client.New(config, client.Options{Scheme: controllers.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &soak{T: t, api: api, typed: typed}
}

func setting[V any](t *testing.T, name string, fallback V, parse func(string) (V, error)) V {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	value, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}
