// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/fluxcd/pkg/apis/kustomize"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/step"
)

// annotationPulls stands on a host namespace from before there can be copies in it until there are none, so that copies are
// found and removed when the platform lists no pull secrets any more, and nobody looks for them where there never were any.
const (
	annotationPulls   = "tenancy.kubeopera.io/pull-secrets"
	pullSecretsCopied = "copied"
	pullSecretsNone   = "none"
)

// ensurePullSecrets keeps copies of the platform's pull secrets in the host namespace. One whose source is gone or cannot be used stays
// as it is. What it lacks is a copy that there cannot be now: a new control plane waits for it, one that was up goes on as it is.
func (r *Reconciler) ensurePullSecrets(ctx context.Context, s *scope) (lacks, err error) {
	wanted := r.Platform.Images.PullSecrets
	if len(wanted) == 0 && s.observed.namespace.Annotations[annotationPulls] != pullSecretsCopied {
		return nil, nil
	}
	copies, err := r.PullSecrets.Copies(s.key(), s.names, s.owner, !s.settled()) //nolint:contextcheck // what it begins to watch is watched beyond this pass.
	if err != nil {
		return nil, err
	}
	s.observed.pullSecrets = copies
	for _, name := range wanted {
		switch err := r.ensurePullSecret(ctx, s, name, copies[names.PullSecret(name)]); {
		case err != nil && s.established() && step.Class(err) == "Wait":
			lacks = err
		case err != nil:
			return nil, err
		}
	}
	return lacks, nil
}

// removePullSecrets removes the copies that are not listed any more and that no pod of the control plane needs: one that is held keeps
// what its release names.
func (r *Reconciler) removePullSecrets(ctx context.Context, s *scope) error {
	wanted, copies := r.Platform.Images.PullSecrets, s.observed.pullSecrets
	for name, secret := range copies {
		listed := slices.ContainsFunc(wanted, func(w string) bool { return names.PullSecret(w) == name })
		if listed || namesPullSecret(s.observed.controlPlane, name) {
			continue
		}
		if err := r.Remove(ctx, s.owner, secret); err != nil {
			return err
		}
	}
	if len(wanted) > 0 || len(copies) > 0 || s.observed.namespace.Annotations[annotationPulls] != pullSecretsCopied {
		return nil
	}
	return r.endPullSecrets(ctx, s)
}

// namesPullSecret tells whether a release makes anything that pulls with a copy: its values are for workloads, its patches for the
// control plane. Both are JSON.
func namesPullSecret(release *helmv2.HelmRelease, name string) bool {
	reference := strconv.Quote(name)
	if release.Spec.Values != nil && strings.Contains(string(release.Spec.Values.Raw), reference) {
		return true
	}
	for _, renderer := range release.Spec.PostRenderers {
		if renderer.Kustomize != nil && slices.ContainsFunc(renderer.Kustomize.Patches, func(p kustomize.Patch) bool { return strings.Contains(p.Patch, reference) }) {
			return true
		}
	}
	return false
}

func (r *Reconciler) ensurePullSecret(ctx context.Context, s *scope, name string, cached *corev1.Secret) error {
	source, err := r.PullSecrets.Source(name) //nolint:contextcheck // what it begins to watch is watched beyond this pass.
	if err != nil {
		return err
	}
	if !usable(source) {
		if cached != nil {
			return nil
		}
		return step.Wait(v1alpha1.ReasonPullSecretUnusable, fmt.Sprintf("waiting for the platform's pull secret %s", name))
	}
	_, err = apply.Ensure(ctx, r.Applier, s.owner, cached, desiredPullSecret(s, source))
	return err
}

// endPullSecrets notes that there are no copies any more.
func (r *Reconciler) endPullSecrets(ctx context.Context, s *scope) (err error) {
	r.PullSecrets.Forget(s.key())
	desired := desiredNamespace(s, r.Platform)
	metav1.SetMetaDataAnnotation(&desired.ObjectMeta, annotationPulls, pullSecretsNone)
	s.observed.namespace, err = apply.Ensure(ctx, r.Applier, s.owner, s.observed.namespace, desired)
	return err
}

// usable tells whether a kubelet could pull with a Secret.
func usable(source *corev1.Secret) bool {
	return source != nil && source.Type == corev1.SecretTypeDockerConfigJson && json.Valid(source.Data[corev1.DockerConfigJsonKey])
}

// desiredPullSecret has nothing of the source but the credentials.
func desiredPullSecret(s *scope, source *corev1.Secret) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: names.PullSecret(source.Name), Namespace: s.names.HostNamespace()},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: source.Data[corev1.DockerConfigJsonKey]},
	}
}

// pullSecretReferences name the copies, as a pod does.
func pullSecretReferences(pullSecrets []string) []corev1.LocalObjectReference {
	references := make([]corev1.LocalObjectReference, 0, len(pullSecrets))
	for _, name := range pullSecrets {
		references = append(references, corev1.LocalObjectReference{Name: names.PullSecret(name)})
	}
	return references
}

// pullSecretPatches let the pods of the control plane pull with the copies. The chart's own value would do the same for every pod of
// the tenant, because it puts what the control plane's ServiceAccount has on that of the workloads too.
func pullSecretPatches(n names.CloudSpace, pullSecrets []string) ([]kustomize.Patch, error) {
	if len(pullSecrets) == 0 {
		return nil, nil
	}
	references, err := json.Marshal(pullSecretReferences(pullSecrets))
	if err != nil {
		return nil, err
	}
	patch := fmt.Sprintf(`[{"op": "add", "path": "/spec/template/spec/imagePullSecrets", "value": %s}]`, references)
	return []kustomize.Patch{
		{Target: &kustomize.Selector{Group: "apps", Version: "v1", Kind: "Deployment", Name: n.HostName()}, Patch: patch},
		{Target: &kustomize.Selector{Group: "apps", Version: "v1", Kind: "StatefulSet", Name: n.EtcdStatefulSet()}, Patch: patch},
	}, nil
}
