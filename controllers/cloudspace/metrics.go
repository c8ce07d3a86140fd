// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

// Metrics of what happens. What stands is told by the collector below, from the cache, so that no series outlives its
// CloudSpace.
var (
	stepDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "kubeopera_cloudspace_step_duration_seconds",
		Help:    "Time from a step's first try until it was proven.",
		Buckets: []float64{0.1, 0.5, 1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 300, 600, 1200},
	}, []string{"step"})
	provisioningDuration = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "kubeopera_cloudspace_provisioning_duration_seconds",
		Help:    "Time from the creation of a CloudSpace until its first Active.",
		Buckets: []float64{5, 10, 20, 30, 45, 60, 75, 90, 120, 180, 300, 600, 1200, 3600},
	})
	retries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubeopera_cloudspace_retries_total",
		Help: "Passes that tried a step again after it went wrong.",
	}, []string{"step"})
	mended = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubeopera_cloudspace_releases_mended_total",
		Help: "Releases that Flux was made to try again, by role and by why they did not get on: Failed, Exhausted or Locked.",
	}, []string{"role", "cause"})
	reconcileErrors = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "kubeopera_cloudspace_reconcile_errors_total",
		Help: "Passes that ended in an error, by class: Transient, Terminal or Stale.",
	}, []string{"class"})
)

func init() {
	metrics.Registry.MustRegister(stepDuration, provisioningDuration, retries, mended, reconcileErrors)
}

// recordError counts a pass that ended in an error. Waiting is none, also for what is only not seen yet.
func recordError(err error) {
	if class := step.Class(err); class != "" && class != "Wait" && !errors.Is(err, step.ErrUnseen) {
		reconcileErrors.WithLabelValues(class).Inc()
	}
}

// recordRetries counts the steps of a pass that were tried although they had gone wrong before.
func recordRetries(previous []metav1.Condition, outcomes []step.Outcome) {
	for _, o := range outcomes {
		if c := meta.FindStatusCondition(previous, o.Proves); o.Attempted && c != nil && failure(*c) {
			retries.WithLabelValues(o.Proves).Inc()
		}
	}
}

// recordTransitions measures the steps that were proven, and the provisioning that ended, with this status.
func recordTransitions(object *v1alpha1.CloudSpace, before v1alpha1.CloudSpaceStatus, now time.Time) {
	for _, c := range object.Status.Conditions {
		old := meta.FindStatusCondition(before.Conditions, c.Type)
		if c.Status == metav1.ConditionTrue && old != nil && old.Status == metav1.ConditionFalse && c.Type != v1alpha1.ConditionReady {
			stepDuration.WithLabelValues(c.Type).Observe(seconds(old.LastTransitionTime, now))
		}
	}
	if object.Status.Phase == v1alpha1.CloudSpaceActive && !wasActive(before.Timeline) {
		provisioningDuration.Observe(seconds(object.CreationTimestamp, now))
	}
}

// seconds is how long it took since; nothing by a clock that jumped back meanwhile: a sum of seconds never shrinks.
func seconds(since metav1.Time, now time.Time) float64 { return max(0, now.Sub(since.Time).Seconds()) }

var (
	phaseDescription = prometheus.NewDesc("kubeopera_cloudspace_phase",
		"1 for the phase that a CloudSpace is in.", []string{"tenant", "cloudspace", "phase"}, nil)
	outdatedDescription = prometheus.NewDesc("kubeopera_cloudspace_outdated",
		"1 for a CloudSpace whose control plane is not yet, or cannot be, what was asked for last, with the reason.", []string{"tenant", "cloudspace", "reason"}, nil)
	expiryDescription = prometheus.NewDesc("kubeopera_cloudspace_kubeconfig_expiry_timestamp_seconds",
		"End of the validity of a CloudSpace's kubeconfig, in seconds since 1970.", []string{"tenant", "cloudspace"}, nil)
)

// Collector tells phases and kubeconfig expiry of all CloudSpaces as the cache has them.
type Collector struct {
	Reader client.Reader
}

// Describe names what Collect tells.
func (c Collector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- phaseDescription
	descriptions <- outdatedDescription
	descriptions <- expiryDescription
}

// Collect tells one phase for each CloudSpace, why it is not up to date if it is not, and the expiry where there is a kubeconfig.
func (c Collector) Collect(collected chan<- prometheus.Metric) {
	list := &v1alpha1.CloudSpaceList{}
	if err := c.Reader.List(context.Background(), list); err != nil {
		return
	}
	for i := range list.Items {
		object := &list.Items[i]
		tenant, _ := names.TenantID(object.Namespace)
		if object.Status.Phase != "" {
			collected <- prometheus.MustNewConstMetric(phaseDescription, prometheus.GaugeValue, 1, tenant, object.Name, string(object.Status.Phase))
		}
		if c := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.ConditionUpToDate); c != nil && c.Status == metav1.ConditionFalse {
			collected <- prometheus.MustNewConstMetric(outdatedDescription, prometheus.GaugeValue, 1, tenant, object.Name, c.Reason)
		}
		if expires := object.Status.Kubeconfig.Expires; expires != nil {
			collected <- prometheus.MustNewConstMetric(expiryDescription, prometheus.GaugeValue, float64(expires.Unix()), tenant, object.Name)
		}
	}
}
