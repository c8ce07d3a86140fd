// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"slices"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// What a private registry changes in the objects of a CloudSpace: all else is as in objects.golden.yaml.
func TestObjectsForAPrivateRegistry(t *testing.T) {
	platform := testPlatform(t)
	platform.Images.PullSecrets = []string{"mirror", "other"}
	platform.Charts.Flux.SecretName, platform.Charts.Flux.CertSecretName = "charts-login", "charts-authority"
	s := grantedScope(testCloudSpace("staging"))
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

// privateRegistry is a host cluster with a CloudSpace that is Active, and with Secrets that can be seen.
type privateRegistry struct {
	*chaos
	sources, copies cache.Store
}

func newPrivateRegistry(t *testing.T, day []byte) *privateRegistry {
	t.Helper()
	p := &privateRegistry{newChaos(t), cache.NewStore(cache.MetaNamespaceKeyFunc), cache.NewStore(cache.MetaNamespaceKeyFunc)}
	follow := func(w *secretWatch, namespace, name string, of types.UID, store cache.Store) {
		w.followed[types.NamespacedName{Namespace: namespace, Name: name}] = &followed{
			of: of, store: store, namespace: "kubeopera-system", synced: func() bool { return true }, stop: func() {},
		}
	}
	for _, name := range []string{"mirror", "other"} {
		follow(p.r.PullSecrets.sources, "kubeopera-system", name, "", p.sources)
	}
	follow(p.r.PullSecrets.copies, "tenant-alice-default", "default", "uid-1", p.copies)
	p.live(day)
	return p
}

// source makes a pull secret of the platform that can be used.
func (p *privateRegistry) source(name string) {
	p.t.Helper()
	if err := p.sources.Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubeopera-system", Name: name}, Type: corev1.SecretTypeDockerConfigJson,
		Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
	}); err != nil {
		p.t.Fatal(err)
	}
}

// settles makes passes while Flux and Kubernetes do their work, and gives what copies there are then, and why the control plane is not
// up to date.
func (p *privateRegistry) settles() (copies []string, upToDate, ready *metav1.Condition) {
	p.t.Helper()
	for range 4 {
		p.seeCopies()
		p.live([]byte{actPass, 0, actFluxDone, 0, actWorkloads, 0, actFluxDone, 1})
	}
	for _, secret := range p.seeCopies() {
		copies = append(copies, secret.Name)
	}
	c := p.object().Status.Conditions
	return copies, meta.FindStatusCondition(c, v1alpha1.ConditionUpToDate), meta.FindStatusCondition(c, v1alpha1.ConditionReady)
}

func (p *privateRegistry) seeCopies() []corev1.Secret {
	p.t.Helper()
	list := &corev1.SecretList{}
	if err := p.Server.List(p.t.Context(), list, client.InNamespace("vcluster-alice-default")); err != nil {
		p.t.Fatal(err)
	}
	seen := make([]any, 0, len(list.Items))
	for i := range list.Items {
		seen = append(seen, &list.Items[i])
	}
	if err := p.copies.Replace(seen, ""); err != nil {
		p.t.Fatal(err)
	}
	return list.Items
}

// others lets another control plane have the only turn for changes of the platform, or gives it back.
func (p *privateRegistry) others(roll bool) {
	p.t.Helper()
	s := newScope(testCloudSpace("default", func(c *v1alpha1.CloudSpace) { c.Namespace, c.UID = "tenant-bob", "uid-bob" }))
	release := helmRelease("bob")
	release.Labels = s.owner.Labels()
	release.Annotations = map[string]string{annotationRolling: Turn{cause: rolledByPlatform, since: p.clock.Now()}.String()}
	object := s.object
	if !roll {
		p.Others(func() error { return p.Server.Delete(p.t.Context(), release) })
		return
	}
	for _, o := range []client.Object{object, release} {
		if err := p.Server.Create(p.t.Context(), o); err != nil {
			p.t.Fatal(err)
		}
		o.SetUID("uid-bob")
		p.Others(func() error { return p.Server.Update(p.t.Context(), o) })
	}
}

// A control plane that waits for its turn pulls with what it has, although the platform does not list that any more.
func TestCopiesStayWhileTheControlPlaneNamesThem(t *testing.T) {
	p := newPrivateRegistry(t, upToActive)
	p.r.Rollout.Patience = time.Hour
	p.source("mirror")
	p.source("other")
	p.r.Platform.Images.PullSecrets = []string{"mirror"}
	if copies, upToDate, _ := p.settles(); !slices.Equal(copies, []string{"cloudspace-pull-mirror"}) || upToDate.Status != metav1.ConditionTrue {
		t.Fatalf("at first there are %v, and it is up to date: %+v", copies, upToDate)
	}
	p.others(true)
	p.r.Platform.Images.PullSecrets = []string{"other"}
	copies, upToDate, ready := p.settles()
	if want := []string{"cloudspace-pull-mirror", "cloudspace-pull-other"}; !slices.Equal(copies, want) || upToDate.Reason != v1alpha1.ReasonWaitingForTurn || ready.Status != metav1.ConditionTrue {
		t.Errorf("while it waits there are %v, want %v; up to date: %+v, ready: %+v", copies, want, upToDate, ready)
	}
	p.others(false)
	if copies, upToDate, _ := p.settles(); !slices.Equal(copies, []string{"cloudspace-pull-other"}) || upToDate.Status != metav1.ConditionTrue {
		t.Errorf("after its turn there are %v, and it is up to date: %+v", copies, upToDate)
	}
	p.r.Platform.Images.PullSecrets = nil
	if copies, upToDate, _ := p.settles(); len(copies) > 0 || upToDate.Status != metav1.ConditionTrue {
		t.Errorf("without any there are %v, and it is up to date: %+v", copies, upToDate)
	}
}

// A pull secret that the platform lists and has not keeps new control planes waiting, and changes nothing for those that run.
func TestAPullSecretThatIsNotThereHoldsTheChange(t *testing.T) {
	p := newPrivateRegistry(t, upToActive)
	p.r.Platform.Images.PullSecrets = []string{"mirror"}
	before := p.release(0).Spec
	copies, upToDate, ready := p.settles()
	if len(copies) > 0 || ready.Status != metav1.ConditionTrue || upToDate.Status != metav1.ConditionFalse || upToDate.Reason != v1alpha1.ReasonPullSecretUnusable {
		t.Errorf("there are %v; up to date: %+v, ready: %+v", copies, upToDate, ready)
	}
	if diff := cmp.Diff(before, p.release(0).Spec); diff != "" {
		t.Errorf("its release was changed:\n%s", diff)
	}
	p.source("mirror")
	if copies, upToDate, _ := p.settles(); !slices.Equal(copies, []string{"cloudspace-pull-mirror"}) || upToDate.Status != metav1.ConditionTrue {
		t.Errorf("once it is there, there are %v, and it is up to date: %+v", copies, upToDate)
	}

	late := newPrivateRegistry(t, nil)
	late.r.Platform.Images.PullSecrets = []string{"mirror"}
	late.live(upToActive)
	if c := meta.FindStatusCondition(late.object().Status.Conditions, v1alpha1.ConditionControlPlaneReady); c.Reason != v1alpha1.ReasonPullSecretUnusable || late.release(0) != nil {
		t.Errorf("a new one does not wait: %+v", c)
	}
}

// What is said of a copy is what a release says in either place, to the letter.
func TestWhatReleasesName(t *testing.T) {
	platform := testPlatform(t)
	s := newScope(testCloudSpace("default"))
	for name, workloads := range map[string]bool{"for the control plane": false, "for workloads too": true} {
		t.Run(name, func(t *testing.T) {
			platform.Images.PullSecrets, platform.Images.WorkloadsUsePullSecrets = []string{"mirror-two"}, workloads
			release, err := desiredControlPlane(s, platform, desiredValues(s.names, s.object.Spec, platform.Kubernetes[0], platform.Sizes["Small"], platform))
			if err != nil {
				t.Fatal(err)
			}
			patched := release.DeepCopy()
			patched.Spec.Values = nil
			release.Spec.PostRenderers = nil
			for which, tt := range map[string]struct {
				release *helmv2.HelmRelease
				want    bool
			}{"patches": {patched, true}, "values": {release, workloads}} {
				if got := namesPullSecret(tt.release, "cloudspace-pull-mirror-two"); got != tt.want {
					t.Errorf("the %s name it: %v, want %v", which, got, tt.want)
				}
				if namesPullSecret(tt.release, "cloudspace-pull-mirror") {
					t.Errorf("the %s name another", which)
				}
			}
		})
	}
}
