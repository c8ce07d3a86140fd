// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// roleNames are the ClusterRoles that config/rbac ships for members, and the RoleBindings to them in tenant namespaces.
var roleNames = map[v1alpha1.MemberRole]string{
	v1alpha1.MemberOwner:  "cloudspace-owner",
	v1alpha1.MemberEditor: "cloudspace-editor",
	v1alpha1.MemberViewer: "cloudspace-viewer",
}

func desiredNamespace(s *scope) *corev1.Namespace {
	return &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: names.TenantNamespace(s.object.Name)},
		// As Kubernetes fills it in.
		Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
	}
}

// desiredAccess binds the members of a role. A role without members has a binding without subjects: taking the last member
// away is then the same as taking any.
func desiredAccess(s *scope, role v1alpha1.MemberRole) *rbacv1.RoleBinding {
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: roleNames[role], Namespace: names.TenantNamespace(s.object.Name)},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: roleNames[role]},
	}
	for _, member := range s.object.Spec.Members {
		if member.Role == role {
			binding.Subjects = append(binding.Subjects, subject(member))
		}
	}
	return binding
}

func subject(member v1alpha1.Member) rbacv1.Subject {
	if member.Kind == v1alpha1.MemberServiceAccount {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: member.Name, Namespace: member.Namespace}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: string(member.Kind), Name: member.Name}
}

// desiredCloudSpace has the spec of the template when that is new, and otherwise the spec that stands: what was changed on the
// CloudSpace itself stays until the template changes.
func desiredCloudSpace(s *scope) (*v1alpha1.CloudSpace, error) {
	template := s.object.Spec.DefaultCloudSpace.Template.Spec
	version, err := digestOf(template)
	if err != nil {
		return nil, err
	}
	desired := &v1alpha1.CloudSpace{
		ObjectMeta: metav1.ObjectMeta{
			Name:        v1alpha1.CloudSpaceDefaultName,
			Namespace:   names.TenantNamespace(s.object.Name),
			Annotations: map[string]string{v1alpha1.AnnotationTemplate: version},
		},
		Spec: template,
	}
	if live := s.observed.cloudSpace; live != nil && live.Annotations[v1alpha1.AnnotationTemplate] == version {
		desired.Spec = live.Spec
	}
	return desired, nil
}

// digestOf is short, and the same for the same value.
func digestOf(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// annotationOpens stands on the copy of a kubeconfig: the UID of the CloudSpace that it opens.
const annotationOpens = "tenancy.kubeopera.io/opens"

func desiredKubeconfig(s *scope) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: names.TenantKubeconfigSecret(s.object.Name), Namespace: names.SystemNamespace,
			Annotations: map[string]string{annotationOpens: string(s.observed.cloudSpace.UID)},
		},
		Type: corev1.SecretTypeOpaque,
		Data: s.observed.source.Data,
	}
}
