// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

const day = 24 * time.Hour

// expiryWarnings are how long before its end a kubeconfig is warned of, the last one first. vCluster renews its certificates 90 days
// before their end: a warning means that it did not.
var expiryWarnings = []struct {
	before  time.Duration
	warning v1alpha1.KubeconfigWarning
}{
	{0, v1alpha1.KubeconfigExpired},
	{7 * day, v1alpha1.KubeconfigExpiresIn7Days},
	{30 * day, v1alpha1.KubeconfigExpiresIn30Days},
}

// warningOf is what there is to say of a kubeconfig now; empty when there is nothing.
func warningOf(expires, now time.Time) v1alpha1.KubeconfigWarning {
	for _, w := range expiryWarnings {
		if expires.Sub(now) <= w.before {
			return w.warning
		}
	}
	return ""
}

// nextWarning is how long it is until there is something else to say; zero when nothing more is to come.
func nextWarning(k v1alpha1.KubeconfigStatus, now time.Time) time.Duration {
	var next time.Duration
	if k.Expires == nil {
		return next
	}
	for _, w := range expiryWarnings {
		if until := k.Expires.Sub(now) - w.before; until > 0 {
			next = earlier(next, until)
		}
	}
	return next
}

// warnOfExpiry tells of each warning once: status keeps the last one.
func (r *Reconciler) warnOfExpiry(object *v1alpha1.CloudSpace, before v1alpha1.CloudSpaceStatus) {
	k := object.Status.Kubeconfig
	if k.Warning == "" || k.Warning == before.Kubeconfig.Warning || k.Expires == nil {
		return
	}
	r.event(object, corev1.EventTypeWarning, eventKubeconfigExpires,
		"the kubeconfig ends "+k.Expires.UTC().Format(time.RFC3339)+": the control plane should have renewed it 90 days before")
}
