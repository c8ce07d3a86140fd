// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// chartTurned lets through the changes of a chart that all CloudSpaces must hear of: it went, its spec was altered, or it
// became, or ceased to be, one that cannot be fetched. Flux writes a chart's status more often than that.
type chartTurned struct{ predicate.Funcs }

// Create is let through by the release that names the chart: it is always made after it.
func (chartTurned) Create(event.CreateEvent) bool { return false }

// Update lets through what changes our judgement.
func (chartTurned) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*sourcev1.HelmChart)
	after, alsoOK := e.ObjectNew.(*sourcev1.HelmChart)
	return ok && alsoOK && (before.Generation != after.Generation || chartBroken(before) != chartBroken(after))
}
