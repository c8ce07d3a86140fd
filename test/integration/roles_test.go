// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/controllers"
)

// bearing is how the bearer of a token reaches the API server.
func bearing(token string) *rest.Config {
	config := rest.AnonymousClientConfig(adminConfig)
	config.BearerToken = token
	return config
}

// rights lists all that somebody may do in a namespace, cluster-wide rights included: "verbs group/resource" each.
func rights(t *testing.T, config *rest.Config, namespace string) []string {
	t.Helper()
	bearer, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review, err := bearer.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
		&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.Incomplete {
		t.Fatal("the rules are not all:", review.Status.EvaluationError)
	}
	var all []string
	for _, rule := range review.Status.ResourceRules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				of := group + "/" + resource
				if len(rule.ResourceNames) > 0 {
					of += " " + strings.Join(rule.ResourceNames, ",")
				}
				all = append(all, strings.Join(rule.Verbs, ",")+" "+of)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Every right of administrators and customers is written down here: one more, by whichever role, and this fails.
func TestWhatAdministratorsAndCustomersMayDo(t *testing.T) {
	t.Parallel()
	const reading, all = "get,list,watch ", "get,list,watch,create,update,patch,delete "
	anybody := []string{
		"create authorization.k8s.io/selfsubjectaccessreviews", "create authorization.k8s.io/selfsubjectrulesreviews",
		"create authentication.k8s.io/selfsubjectreviews",
	}
	everywhere := append([]string{
		all + "tenancy.kubeopera.io/cloudspaces", all + "tenancy.kubeopera.io/tenantquotas", all + "tenancy.kubeopera.io/tenants",
		reading + "/events", reading + "events.k8s.io/events", reading + "/namespaces", reading + "/resourcequotas",
		"get,list,watch,create,update,patch,delete,deletecollection view.kubeopera.io/cloudspaces", reading + "view.kubeopera.io/accounts",
	}, anybody...)
	// The view shows them their own, or refuses.
	customer := append([]string{reading + "view.kubeopera.io/cloudspaces", reading + "view.kubeopera.io/accounts"}, anybody...)
	// Where the platform's own provider is installed, they keep its users.
	core := []string{"get,patch /secrets auth-service-users"}
	platform := append([]string{
		reading + "/pods", reading + "/pods/log", reading + "/services", reading + "apps/deployments", reading + "apps/replicasets",
		reading + "helm.toolkit.fluxcd.io/helmreleases", reading + "source.toolkit.fluxcd.io/helmcharts", reading + "source.toolkit.fluxcd.io/helmrepositories",
	}, everywhere...)
	administrator := claims{"sub": "rights", "user_type": "super_admin", "tenant_id": nil}
	tests := map[string]struct {
		claims    claims
		namespace string
		want      []string
	}{
		"an administrator, anywhere":                   {administrator, "kube-system", everywhere},
		"an administrator, in a host namespace":        {administrator, "vcluster-alice-default", everywhere},
		"an administrator, in kubeopera-system":        {administrator, "kubeopera-system", platform},
		"an administrator, in kubeopera-core":          {administrator, "kubeopera-core", append(core, platform...)},
		"a customer, anywhere":                         {claims{"sub": "rights"}, "default", customer},
		"a customer, in the platform's namespace":      {claims{"sub": "rights"}, "kubeopera-system", customer},
		"a customer who is no member, in the tenant's": {claims{"sub": "rights"}, "tenant-alice-default", customer},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, rights(t, bearing(tokens.signed(t, tokens.customer(tt.claims))), tt.namespace)); diff != "" {
				t.Errorf("rights (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAdministratorLooksAfterTenants(t *testing.T) {
	t.Parallel()
	administrator, err := client.NewWithWatch(
		bearing(tokens.signed(t, tokens.customer(claims{"sub": "root", "user_type": "super_admin", "tenant_id": nil}))), client.Options{Scheme: controllers.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	made := tenant("looked-after", func(o *v1alpha1.Tenant) {
		o.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "kubeopera:alice", Role: "Owner"}}
	})
	if err := administrator.Create(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	reach(t, made, "Ready")
	if err := administrator.Get(t.Context(), client.ObjectKey{Namespace: "tenant-looked-after", Name: "default"}, &v1alpha1.CloudSpace{}); err != nil {
		t.Error(err)
	}
	kubeconfig := secret("kubeopera-system", "tenant-looked-after-kubeconfig")
	if err := administrator.Get(t.Context(), client.ObjectKeyFromObject(kubeconfig), kubeconfig); !apierrors.IsForbidden(err) {
		t.Errorf("a kubeconfig is theirs to read: %v", err)
	}
	if err := administrator.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	gone(t, made)
}
