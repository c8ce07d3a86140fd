// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/clock"
)

// HostVersion tells the Kubernetes version of the host cluster.
type HostVersion interface {
	// Minor is the minor version: 36 for v1.36.3.
	Minor(ctx context.Context) (int, error)
}

// hostVersionSpan is how long an answer counts: a host cluster is upgraded while the operator runs, but not often.
const hostVersionSpan = 10 * time.Minute

// DiscoveredHost asks the host cluster, and remembers the answer for a while.
type DiscoveredHost struct {
	Client discovery.ServerVersionInterface
	Clock  clock.PassiveClock

	mu    sync.Mutex
	minor int
	asked time.Time
}

// Minor gives the remembered answer, or asks.
func (h *DiscoveredHost) Minor(context.Context) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.asked.IsZero() && h.Clock.Since(h.asked).Abs() < hostVersionSpan {
		return h.minor, nil
	}
	info, err := h.Client.ServerVersion()
	if err != nil {
		return 0, err
	}
	parsed, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return 0, fmt.Errorf("the host cluster says that its version is %q: %w", info.GitVersion, err)
	}
	h.minor, h.asked = int(parsed.Minor()), h.Clock.Now()
	return h.minor, nil
}
