// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
)

// PullSecretWatch follows the platform's pull secrets, in the system namespace, and their copies in each host namespace.
type PullSecretWatch struct{ sources, copies *secretWatch }

// NewPullSecretWatch makes a watch that follows nothing yet.
func NewPullSecretWatch(client kubernetes.Interface) *PullSecretWatch {
	return &PullSecretWatch{sources: newSecretWatch(client, whole), copies: newSecretWatch(client, onlyPullSecrets)}
}

// Start ends all watches when the program stops.
func (w *PullSecretWatch) Start(ctx context.Context) error {
	_ = w.sources.Start(ctx)
	return w.copies.Start(ctx)
}

// Source is one of the platform's pull secrets as last seen, nil when there is none.
func (w *PullSecretWatch) Source(name string) (*corev1.Secret, error) {
	f := w.sources.follow(types.NamespacedName{Namespace: names.SystemNamespace, Name: name}, "", names.SystemNamespace, true, byName(name))
	pending := f.pending()
	return f.get(name), pending
}

// Copies are the pull secrets in a host namespace that were made for a CloudSpace, by name. They are found by the owner alone: were a
// mark of their own needed, one that loses it could neither be seen nor be made anew.
func (w *PullSecretWatch) Copies(cloudSpace types.NamespacedName, n names.CloudSpace, owner apply.Owner, urgent bool) (map[string]*corev1.Secret, error) {
	ours := labels.Set{v1alpha1.LabelOwnerUID: string(owner.UID)}.String()
	f := w.copies.follow(cloudSpace, owner.UID, n.HostNamespace(), urgent, func(o *metav1.ListOptions) { o.LabelSelector = ours })
	pending, copies := f.pending(), map[string]*corev1.Secret{}
	for _, object := range f.store.List() {
		if secret, ok := object.(*corev1.Secret); ok && names.IsPullSecret(secret.Name) {
			copies[secret.Name] = secret
		}
	}
	return copies, pending
}

// Forget ends the watch of a CloudSpace's copies.
func (w *PullSecretWatch) Forget(cloudSpace types.NamespacedName) { w.copies.Forget(cloudSpace) }

// onlyPullSecrets drops what else our labels are on: what the chart of the control plane keeps in Secrets.
func onlyPullSecrets(secret *corev1.Secret) {
	if !names.IsPullSecret(secret.Name) {
		secret.Data = nil
	}
}
