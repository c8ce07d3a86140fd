// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// What a private registry changes in the objects of a CloudSpace: all else is as in objects.golden.yaml.
func TestObjectsForAPrivateRegistry(t *testing.T) {
	platform := testPlatform(t)
	platform.Images.PullSecrets = []string{"mirror", "other"}
	platform.Charts.Flux.SecretName, platform.Charts.Flux.CertSecretName = "charts-login", "charts-authority"
	s := newScope(testCloudSpace("staging"))
	controlPlane, err := desiredControlPlane(s, platform, Values{})
	if err != nil {
		t.Fatal(err)
	}
	source := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "mirror", Namespace: "kubeopera-system", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{}`), "notes": []byte("ours")},
	}
	var text []string
	for _, object := range []any{
		desiredNamespace(s, platform), desiredPullSecret(s, source), desiredRepository(roleFlux, &platform.Charts.Flux, platform),
		controlPlane.Spec.PostRenderers,
	} {
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, string(document))
	}
	compareGolden(t, "private-registry.golden.yaml", []byte(strings.Join(text, "---\n")))
}

func TestOnlyWhatAKubeletCanUseIsCopied(t *testing.T) {
	secret := func(kind corev1.SecretType, key, text string) *corev1.Secret {
		return &corev1.Secret{Type: kind, Data: map[string][]byte{key: []byte(text)}}
	}
	tests := map[string]struct {
		source *corev1.Secret
		want   bool
	}{
		"credentials":          {secret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{"auths":{}}`), true},
		"none":                 {nil, false},
		"another type":         {secret(corev1.SecretTypeOpaque, corev1.DockerConfigJsonKey, `{"auths":{}}`), false},
		"another key":          {secret(corev1.SecretTypeDockerConfigJson, "config.json", `{"auths":{}}`), false},
		"something else in it": {secret(corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `auths`), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := usable(tt.source); got != tt.want {
				t.Errorf("usable is %t, want %t", got, tt.want)
			}
		})
	}
}
