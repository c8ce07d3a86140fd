// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/step"
)

var (
	reconcileErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubeopera_tenant_reconcile_errors_total",
		Help: "Passes that ended in an error, by class: Transient, Terminal or Stale.",
	}, []string{"class"})
	phaseDescription = prometheus.NewDesc("kubeopera_tenant_phase",
		"1 for the phase that a Tenant is in.", []string{"tenant", "phase"}, nil)
)

func init() {
	metrics.Registry.MustRegister(reconcileErrors)
}

// recordError counts a pass that ended in an error. Waiting is none.
func recordError(err error) {
	if class := step.Class(err); class != "" && class != "Wait" {
		reconcileErrors.WithLabelValues(class).Inc()
	}
}

// Collector tells the phases of all Tenants as the cache has them.
type Collector struct {
	Reader client.Reader
}

// Describe names what Collect tells.
func (c Collector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- phaseDescription }

// Collect tells one phase for each Tenant.
func (c Collector) Collect(collected chan<- prometheus.Metric) {
	list := &v1alpha1.TenantList{}
	if err := c.Reader.List(context.Background(), list); err != nil {
		return
	}
	for i := range list.Items {
		if phase := list.Items[i].Status.Phase; phase != "" {
			collected <- prometheus.MustNewConstMetric(phaseDescription, prometheus.GaugeValue, 1, list.Items[i].Name, string(phase))
		}
	}
}
