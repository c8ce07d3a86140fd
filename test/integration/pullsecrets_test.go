// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pullSecret is the platform's, in all tests.
const pullSecret = "registry-credentials"

// credentials are the platform's pull secret with some password.
func credentials(password string) *corev1.Secret {
	object := secret(systemNamespace, pullSecret)
	object.Type = corev1.SecretTypeDockerConfigJson
	object.Data = map[string][]byte{corev1.DockerConfigJsonKey: fmt.Appendf(nil, `{"auths":{"mirror.example.com":{"auth":%q}}}`, password)}
	return object
}

// Serial: what happens to the source concerns the CloudSpaces of every test.
func TestCopiesOfThePullSecretFollowIt(t *testing.T) {
	reach(t, create(t, tenant("pulls")), "Ready")
	followed := func(want string) {
		t.Helper()
		eventually(t, func(g gomega.Gomega) {
			copied := secret("vcluster-pulls", "cloudspace-pull-"+pullSecret)
			g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(copied), copied)).To(gomega.Succeed())
			g.Expect(copied.Type).To(gomega.Equal(corev1.SecretTypeDockerConfigJson))
			g.Expect(string(copied.Data[corev1.DockerConfigJsonKey])).To(gomega.ContainSubstring(want))
		})
	}
	followed("first")
	if err := api.Update(t.Context(), credentials("second")); err != nil {
		t.Fatal(err)
	}
	followed("second")

	// Without its source, what was copied stays, and what was not waits.
	remove(t, secret(systemNamespace, pullSecret))
	waiting := create(t, tenant("pulls-late"))
	says(t, reach(t, waiting, "Provisioning"), "Ready False PullSecretUnusable", pullSecret)
	followed("second")
	says(t, tenant("pulls"), "Ready True Provisioned", "")
	if err := api.Create(t.Context(), credentials("first")); err != nil {
		t.Fatal(err)
	}
	reach(t, waiting, "Ready")
	followed("first")
}

// What lists no pull secrets any more takes away the copies; what is not a copy of ours stays.
func TestCopiesThatAreNotListedGo(t *testing.T) {
	t.Parallel()
	reach(t, create(t, tenant("unlisted")), "Ready")
	listed := get(t, secret("vcluster-unlisted", "cloudspace-pull-"+pullSecret))
	earlier, foreign := listed.DeepCopy(), listed.DeepCopy()
	earlier.Name, earlier.ResourceVersion, earlier.UID = "cloudspace-pull-earlier", "", ""
	foreign.Name, foreign.ResourceVersion, foreign.UID, foreign.Labels = "cloudspace-pull-foreign", "", "", nil
	for _, object := range []*corev1.Secret{foreign, earlier} {
		if err := api.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	gone(t, earlier)
	get(t, foreign)
	get(t, listed)
}

// A stolen token of the operator opens what is the operator's, and not the rest of the cluster.
func TestTheOperatorIsBoundToItsNamespaces(t *testing.T) {
	t.Parallel()
	reach(t, create(t, tenant("bounds")), "Ready")
	operator := identity(t, operatorUser, "system:serviceaccounts", "system:authenticated")
	binding := func(namespace string) client.Object {
		return &rbacv1.RoleBinding{
			ObjectMeta: named(namespace, "stolen"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tenant-controller-host-namespace"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "tenant-controller", Namespace: systemNamespace}},
		}
	}
	token := func(namespace string) client.Object {
		object := secret(namespace, "stolen")
		object.Type, object.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
		return object
	}
	for name, object := range map[string]client.Object{
		"access to kube-system": binding("kube-system"), "access to kubeopera-system": binding(systemNamespace),
		"a token in a host namespace": token("vcluster-bounds"), "a token in kubeopera-system": token(systemNamespace),
	} {
		if err := operator.Create(t.Context(), object); err == nil || !strings.Contains(err.Error(), "operator.kubeopera.io") {
			t.Errorf("%s: %v, want the policy to refuse it", name, err)
		}
	}
}
