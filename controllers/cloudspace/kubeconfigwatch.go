// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
)

// KubeconfigWatch follows one Secret in each host namespace: the one in which the vCluster writes its kubeconfig.
type KubeconfigWatch struct{ *secretWatch }

// NewKubeconfigWatch makes a watch that follows nothing yet.
func NewKubeconfigWatch(client kubernetes.Interface) *KubeconfigWatch {
	return &KubeconfigWatch{newSecretWatch(client, whole)}
}

// Follow begins to watch a CloudSpace's Secret, if that is not done yet, and returns it as last seen; nil when there is none. The error
// says that this is not known: an operator that has just started must not take each CloudSpace for one without a kubeconfig.
// It never calls the API server itself.
func (w *KubeconfigWatch) Follow(cloudSpace types.NamespacedName, n names.CloudSpace, owner apply.Owner, urgent bool) (*corev1.Secret, error) {
	f := w.follow(cloudSpace, owner.UID, n.HostNamespace(), urgent, byName(n.SourceSecret()))
	pending := f.pending()
	if secret := f.get(n.SourceSecret()); secret != nil {
		return secret, nil
	}
	return nil, pending
}
