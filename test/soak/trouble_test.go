//go:build soak

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// makeTrouble kills a part of the platform every twenty seconds to a minute.
func (s *soak) makeTrouble(ctx context.Context, random *rand.Rand) {
	for {
		pause(ctx, time.Duration(20+random.IntN(40))*time.Second)
		if ctx.Err() != nil || time.Now().After(s.deadline) {
			return
		}
		troubles := []struct {
			name string
			do   func(context.Context) error
		}{
			{"operator killed", s.killPods("kubeopera-system", "app.kubernetes.io/name", "tenant-controller")},
			{"helm-controller killed", s.killPods("flux-system", "app", "helm-controller")},
			{"source-controller killed", s.killPods("flux-system", "app", "source-controller")},
			{"host API server killed", restartAPIServer},
		}
		trouble := troubles[random.IntN(len(troubles))]
		s.try(ctx, trouble.name, func() error { return trouble.do(ctx) })
		s.report.count(trouble.name)
	}
}

func (s *soak) killPods(namespace, label, value string) func(context.Context) error {
	return func(ctx context.Context) error {
		return s.api.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace), client.MatchingLabels{label: value}, client.GracePeriodSeconds(0))
	}
}

func restartAPIServer(ctx context.Context) error {
	return exec.CommandContext(ctx, os.Getenv("HOSTCLUSTER"), "restart", "kube-apiserver").Run()
}
