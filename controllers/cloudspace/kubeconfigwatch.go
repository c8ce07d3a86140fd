// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

// KubeconfigWatch follows one Secret in each host namespace: the one in which the vCluster writes its kubeconfig.
type KubeconfigWatch struct{ *secretWatch }

// NewKubeconfigWatch makes a watch that follows nothing yet.
func NewKubeconfigWatch(client kubernetes.Interface) *KubeconfigWatch {
	return &KubeconfigWatch{newSecretWatch(client, whole)}
}

// Follow begins to watch a CloudSpace's Secret, if that is not done yet, and returns it as last seen; nil when there is none. It is not
// known while the watch has only begun: an operator that has just started must not take each CloudSpace for one without a kubeconfig.
// It never calls the API server itself.
func (w *KubeconfigWatch) Follow(cloudSpace types.NamespacedName, n names.CloudSpace, owner apply.Owner, now time.Time) (secret *corev1.Secret, known bool) {
	f := w.follow(cloudSpace, owner.UID, n.HostNamespace(), now, byName(n.SourceSecret()))
	secret = f.get(n.SourceSecret())
	return secret, secret != nil || !errors.Is(f.pending(now), step.ErrStale)
}
