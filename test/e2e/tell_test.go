//go:build e2e

// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// looks are what somebody would look at first, by kubectl's arguments. The end of each is told.
var looks = []string{
	"get tenants,cloudspaces.tenancy.kubeopera.io -A",
	"get namespaces -L tenancy.kubeopera.io/owner-uid",
	"get helmreleases -A",
	"get pods -A --field-selector=status.phase!=Running,status.phase!=Succeeded",
	"get events -A --field-selector=type=Warning --sort-by=.lastTimestamp",
	"logs -n kubeopera-system -l app.kubernetes.io/name=tenant-controller --tail=40 --prefix",
}

// tell says how the host cluster stands after a journey that did not pass: the cluster is gone when somebody reads of it.
func (h *host) tell(t *testing.T, passed bool) {
	t.Helper()
	if passed {
		return
	}
	const end = 40
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, look := range looks {
		out, err := exec.CommandContext(ctx, "kubectl", strings.Fields(look)...).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Logf("kubectl %s (%v)\n%s", look, err, strings.Join(lines[max(0, len(lines)-end):], "\n"))
	}
}
