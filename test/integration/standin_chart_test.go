// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/meta"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/tantilium/cloud-runner/controllers/cloudspace"
)

func (s *standIn) makeControlPlane(ctx context.Context, release *helmv2.HelmRelease) error {
	for _, part := range controlPlaneOf(release) {
		err := s.client.Create(ctx, part)
		if apierrors.IsAlreadyExists(err) {
			err = s.client.Update(ctx, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// controlPlaneOf is what the vCluster chart makes, as far as the operator looks at it.
func controlPlaneOf(release *helmv2.HelmRelease) []client.Object {
	if !strings.HasPrefix(release.Spec.TargetNamespace, "vcluster-") {
		return nil
	}
	made := func(name string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Name: name, Namespace: release.Spec.TargetNamespace}
		if common := release.Spec.CommonMetadata; common != nil {
			m.Labels, m.Annotations = common.Labels, common.Annotations
		}
		return m
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "vcluster"}}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "example.com/a:1"}}},
	}
	if common := release.Spec.CommonMetadata; common != nil {
		// The chart rolls its pods when the values changed.
		pod.Annotations = common.Annotations
	}
	name := release.Spec.ReleaseName
	clusterWide := made("vc-" + name + "-v-" + release.Spec.TargetNamespace)
	clusterWide.Namespace = ""
	syncer := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "vc-" + name, Namespace: release.Spec.TargetNamespace}}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}}
	values := cloudspace.Values{}
	if release.Spec.Values != nil {
		// Values that somebody has altered may be none: the chart then has its own.
		_ = json.Unmarshal(release.Spec.Values.Raw, &values)
	}
	return []client.Object{
		&corev1.ServiceAccount{ObjectMeta: made("vc-" + name)},
		&rbacv1.Role{ObjectMeta: made("vc-" + name), Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: made("vc-" + name), Subjects: syncer, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "vc-" + name}},
		&rbacv1.ClusterRole{ObjectMeta: clusterWide, Rules: rules},
		&rbacv1.ClusterRoleBinding{ObjectMeta: clusterWide, Subjects: syncer, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: clusterWide.Name}},
		&corev1.Service{ObjectMeta: made(name), Spec: serviceOf(values, selector.MatchLabels)},
		&corev1.Secret{ObjectMeta: made("vc-config-" + name), Data: map[string][]byte{"config.yaml": []byte("{}")}},
		&appsv1.StatefulSet{ObjectMeta: made(name + "-etcd"), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pod, ServiceName: name + "-etcd", Replicas: members(release, "StatefulSet", values.ControlPlane.BackingStore.Etcd.Deploy.StatefulSet.HighAvailability.Replicas)}},
		&appsv1.Deployment{ObjectMeta: made(name), Spec: appsv1.DeploymentSpec{Selector: selector, Template: pod, Replicas: members(release, "Deployment", values.ControlPlane.StatefulSet.HighAvailability.Replicas)}},
	}
}

// members are those that the values ask for, unless a patch of the release takes them away.
func members(release *helmv2.HelmRelease, kind string, asked int32) *int32 {
	for _, renderer := range release.Spec.PostRenderers {
		for _, patch := range renderer.Kustomize.Patches {
			if patch.Target.Kind == kind && strings.Contains(patch.Patch, `"/spec/replicas", "value": 0`) {
				return new(int32)
			}
		}
	}
	return new(max(1, asked))
}

// serviceOf is what the chart makes of its values for the Service of the API server.
func serviceOf(values cloudspace.Values, selector map[string]string) corev1.ServiceSpec {
	spec := corev1.ServiceSpec{Selector: selector, Ports: []corev1.ServicePort{{Port: 443, Protocol: corev1.ProtocolTCP}}}
	if asked := values.ControlPlane.Service; asked != nil {
		spec.Type, spec.AllocateLoadBalancerNodePorts = corev1.ServiceType(asked.Spec.Type), &asked.Spec.AllocateLoadBalancerNodePorts
	}
	return spec
}

// lookForDrift is what helm-controller does when it is asked to look at a release that is installed: what is gone is made again,
// what was altered is put right, and what others have added stays.
func (s *standIn) lookForDrift(ctx context.Context, release *helmv2.HelmRelease) error {
	if release.GetDriftDetection().GetMode() == helmv2.DriftDetectionEnabled {
		for _, part := range controlPlaneOf(release) {
			if err := s.putRight(ctx, part); err != nil {
				return err
			}
		}
	}
	return s.patchStatus(ctx, release, func() {
		apimeta.RemoveStatusCondition(&release.Status.Conditions, meta.ReconcilingCondition)
		handled(release)
	})
}

func (s *standIn) putRight(ctx context.Context, part client.Object) error {
	live, ok := part.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no object", part)
	}
	err := s.client.Get(ctx, client.ObjectKeyFromObject(part), live)
	if apierrors.IsNotFound(err) {
		return s.client.Create(ctx, part)
	}
	if err != nil {
		return err
	}
	gvk, err := apiutil.GVKForObject(part, s.client.Scheme())
	if err != nil {
		return err
	}
	part.GetObjectKind().SetGroupVersionKind(gvk)
	// What is right already is not written by the API server.
	return s.client.Patch(ctx, part, client.Merge)
}

// inventory is what helm-controller keeps of what a release has installed.
func inventory(release *helmv2.HelmRelease) *helmv2.ResourceInventory {
	made := &helmv2.ResourceInventory{Entries: []helmv2.ResourceRef{}}
	for _, part := range controlPlaneOf(release) {
		gvk, err := apiutil.GVKForObject(part, theStandIn.client.Scheme())
		if err != nil {
			continue
		}
		id := fmt.Sprintf("%s_%s_%s_%s", part.GetNamespace(), part.GetName(), gvk.Group, gvk.Kind)
		made.Entries = append(made.Entries, helmv2.ResourceRef{ID: id, Version: gvk.Version})
	}
	return made
}
