// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
)

// observed is what stands on the host cluster, as the caches have it. Nil means that there is none, or none of ours.
type observed struct {
	namespace *corev1.Namespace
	access    map[v1alpha1.MemberRole]*rbacv1.RoleBinding
	// quota is what the tenant may use; objectQuota bounds the objects in its namespace.
	quota       *v1alpha1.TenantQuota
	objectQuota *corev1.ResourceQuota
	// cloudSpace is the default one.
	cloudSpace  *v1alpha1.CloudSpace
	cloudSpaces []v1alpha1.CloudSpace
	// source is the kubeconfig of the default CloudSpace; kubeconfig is our copy of it.
	source     *corev1.Secret
	kubeconfig *corev1.Secret
}

// observe reads everything a pass needs from the caches; no call reaches the API server.
func (r *Reconciler) observe(ctx context.Context, s *scope) error {
	o := &s.observed
	id, namespace := s.object.Name, names.TenantNamespace(s.object.Name)
	forDefault, err := names.ForCloudSpace(id, v1alpha1.CloudSpaceDefaultName)
	if err != nil {
		return err
	}
	list := &v1alpha1.CloudSpaceList{}
	if err := errors.Join(
		apply.Read(ctx, r.Client, &o.namespace, "", namespace),
		apply.Read(ctx, r.Client, &o.quota, "", id),
		apply.Read(ctx, r.Client, &o.objectQuota, namespace, names.HostQuota),
		apply.Read(ctx, r.Client, &o.cloudSpace, namespace, v1alpha1.CloudSpaceDefaultName),
		apply.Read(ctx, r.Client, &o.source, names.SystemNamespace, forDefault.KubeconfigSecret()),
		apply.Read(ctx, r.Client, &o.kubeconfig, names.SystemNamespace, names.TenantKubeconfigSecret(id)),
		r.Client.List(ctx, list, client.InNamespace(namespace)),
		r.observeAccess(ctx, o, namespace),
	); err != nil {
		return err
	}
	o.cloudSpaces = list.Items
	return nil
}

func (r *Reconciler) observeAccess(ctx context.Context, o *observed, namespace string) error {
	o.access = map[v1alpha1.MemberRole]*rbacv1.RoleBinding{}
	for role, name := range roleNames {
		var binding *rbacv1.RoleBinding
		if err := apply.Read(ctx, r.Client, &binding, namespace, name); err != nil {
			return err
		}
		o.access[role] = binding
	}
	return nil
}
