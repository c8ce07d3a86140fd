// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// attempt is something that somebody does to the cluster.
type attempt struct {
	what string
	do   func(ctx context.Context, c client.Client) error
	// want is in the refusal; empty means that it is allowed.
	want string
}

// try makes attempts, one after the other.
func try(t *testing.T, c client.Client, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
		t.Run(a.what, func(t *testing.T) {
			err := a.do(t.Context(), c)
			switch {
			case a.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case a.want != "" && err == nil:
				t.Errorf("allowed, want %q", a.want)
			case a.want != "" && !strings.Contains(err.Error(), a.want):
				t.Errorf("refused with %v, want %q", err, a.want)
			}
		})
	}
}

func made(object client.Object, alter ...func(client.Object)) func(context.Context, client.Client) error {
	for _, a := range alter {
		a(object)
	}
	return func(ctx context.Context, c client.Client) error { return c.Create(ctx, object) }
}

func deleted(object client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error { return c.Delete(ctx, object) }
}

func patched(object client.Object, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

func statusPatched(object client.Object, patch string) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// finalized changes a namespace through the subresource that ends one.
func finalized(name string, alter func(*corev1.Namespace)) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		object := namespace(name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		alter(object)
		return c.SubResource("finalize").Update(ctx, object)
	}
}

func labelled(labels map[string]string) func(client.Object) {
	return func(object client.Object) { object.SetLabels(labels) }
}

// clerk may do everything with namespaces and what is in them, and nothing with Tenants.
func clerk(t *testing.T, name string) client.Client {
	t.Helper()
	create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"", "apps", "networking.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	})
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}},
	})
	c := identity(t, name)
	eventually(t, func(g gomega.Gomega) { g.Expect(c.List(t.Context(), &corev1.NamespaceList{})).To(gomega.Succeed()) })
	return c
}

const (
	host   = "vcluster-guarded"
	psa    = "pod-security.kubernetes.io/enforce"
	noEnd  = "host namespaces are ended by tenant-controller alone"
	noHost = "labels of host namespaces are changed by tenant-controller alone"
	noHand = "quotas, limits and network policies of host namespaces are changed by tenant-controller alone"
)

// Nobody but the operator takes a host namespace, its labels or what isolates it, by whichever way, and Kubernetes still counts and empties.
func TestHostNamespacesAreTheOperators(t *testing.T) {
	t.Parallel()
	object := reach(t, create(t, tenant("guarded")), "Ready")
	open := networkPolicy(host, "open")
	open.Spec = networkingv1.NetworkPolicySpec{Egress: []networkingv1.NetworkPolicyEgressRule{{}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress}}
	hard := &corev1.ResourceQuota{ObjectMeta: named(host, "cloudspace")}
	limits := &corev1.LimitRange{ObjectMeta: named(host, "cloudspace")}
	foreign := &corev1.ResourceQuota{ObjectMeta: named(host, "other"), Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("0")}}}
	everywhere := []attempt{
		{"a namespace of that name", made(namespace("vcluster-other")), "namespaces named vcluster-* are made by tenant-controller alone"},
		{"pod security lowered", patched(namespace(host), `{"metadata":{"labels":{"`+psa+`":"privileged"}}}`), noHost},
		{"pod security taken off by way of status", statusPatched(namespace(host), `{"metadata":{"labels":{"`+psa+`":null}}}`), noHost},
		{"pod security lowered by way of finalize", finalized(host, func(n *corev1.Namespace) { n.Labels[psa] = "privileged" }), "by tenant-controller alone"},
		{"its end", deleted(namespace(host)), noEnd},
		{"an end before it is empty", finalized(host, func(n *corev1.Namespace) { n.Spec.Finalizers = nil }), noEnd},
		{"another owner", patched(namespace(host), `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":"a"}}}`), noHost},
		{"another tenant by way of status", statusPatched(namespace(host), `{"metadata":{"labels":{"tenancy.kubeopera.io/tenant":"mallory"}}}`), noHost},
		{"a label that another policy may select", patched(namespace(host), `{"metadata":{"labels":{"example.com/trusted":"yes"}}}`), noHost},
		{"an annotation of the platform", patched(namespace(host), `{"metadata":{"annotations":{"tenancy.kubeopera.io/pull-secrets":"a"}}}`), "annotations of the platform"},
		{"an owner whose end would end it", patched(namespace(host), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"a","uid":"b"}]}}`), "owner references"},
		{"the quota raised", patched(hard, `{"spec":{"hard":{"pods":"1000"}}}`), noHand},
		{"the quota labelled", patched(hard, `{"metadata":{"labels":{"a":"b"}}}`), noHand},
		{"the quota deleted", deleted(hard), noHand},
		{"the quota raised by way of status", statusPatched(hard, `{"status":{"hard":{"pods":"1000"}}}`), noHand},
		{"what is used forgotten", statusPatched(hard, `{"status":{"used":{"pods":"0"}}}`), noHand},
		{"a quota that starves", made(foreign), noHand},
		{"the limits lifted", patched(limits, `{"spec":{"limits":[]}}`), noHand},
		{"the limits deleted", deleted(limits), noHand},
		{"a policy that opens", made(open), noHand},
		{"a policy altered", patched(networkPolicy(host, "cloudspace"), `{"spec":{"egress":[{}]}}`), noHand},
		{"a policy deleted", deleted(networkPolicy(host, "cloudspace-workloads")), noHand},
	}
	t.Run("an administrator", func(t *testing.T) { try(t, admin, everywhere) })
	t.Run("somebody with rights to namespaces", func(t *testing.T) { try(t, clerk(t, "clerk"), everywhere) })
	t.Run("somebody with rights to workloads says by way of status whose they are", func(t *testing.T) {
		const whose, revision = `{"metadata":{"labels":{"tenancy.kubeopera.io/tenant":"a"}}}`, `{"metadata":{"annotations":{"tenancy.kubeopera.io/revision":"a"}}}`
		try(t, clerk(t, "clerk-of-statuses"), []attempt{
			{"a Service", statusPatched(serviceIn(host, "guarded", nil), whose), "labels " + noMetadata},
			{"a Deployment", statusPatched(deploymentOf("guarded"), revision), "annotations " + noMetadata},
			{"a StatefulSet", statusPatched(&appsv1.StatefulSet{ObjectMeta: named(host, "guarded-etcd")}, whose), "labels " + noMetadata},
		})
	})
	t.Run("the operator", func(t *testing.T) {
		try(t, identity(t, operatorUser, masters), []attempt{
			{"labels", patched(namespace(host), `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":"`+get(t, namespace(host)).Labels["tenancy.kubeopera.io/owner-uid"]+`"}}}`), ""},
			{"quotas", patched(hard, `{"metadata":{"annotations":{"a":"b"}}}`), ""},
			{"limits", patched(limits, `{"metadata":{"annotations":{"a":"b"}}}`), ""},
			{"policies", patched(networkPolicy(host, "cloudspace"), `{"metadata":{"annotations":{"a":"b"}}}`), ""},
		})
	})
	says(t, object, "Ready True Provisioned", "")
}

// Members of a tenant have no right on anything of the host cluster but CloudSpaces in their own namespace.
func TestMembersHaveNoRightsOnTheHost(t *testing.T) {
	t.Parallel()
	const id = "outsiders"
	reach(t, create(t, tenant(id, func(o *v1alpha1.Tenant) {
		o.Spec.Members = []v1alpha1.Member{{Kind: "User", Name: "kubeopera:outsider", Role: "Owner"}}
	})), "Ready")
	member, err := kubernetes.NewForConfig(impersonating("kubeopera:outsider", "system:authenticated"))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]bool{"tenant-" + id: true, "vcluster-" + id: false, systemNamespace: false, "kubeopera-core": false, "kube-system": false, "default": false} {
		review, err := member.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(),
			&authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: in}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found := slices.DeleteFunc(review.Status.ResourceRules, func(rule authorizationv1.ResourceRule) bool {
			// Everybody may ask what they may.
			return slices.Equal(rule.APIGroups, []string{"authorization.k8s.io"}) || slices.Equal(rule.APIGroups, []string{"authentication.k8s.io"})
		})
		if got := len(found) > 0; got != want {
			t.Errorf("in %s the rights are %v", in, found)
		}
	}
}

// Names and labels by which the platform finds namespaces are administrators'.
func TestNamespacesOfThePlatformAreAdministrators(t *testing.T) {
	t.Parallel()
	const mine = "administrators"
	tenants := map[string]string{"tenancy.kubeopera.io/tenant": "platform-names"}
	create(t, namespace("platform-names"))
	attempts := func(want ...string) []attempt {
		words := func(i int) string { return append(want, "", "")[min(i, len(want))] }
		return []attempt{
			{"a tenant's namespace", made(namespace("tenant-platform-names"), labelled(tenants)), words(0)},
			{"one with a label of the platform", made(namespace("platform-labels"), labelled(tenants)), words(0)},
			{"a label of the platform on one that is there", patched(namespace("platform-names"), `{"metadata":{"labels":{"tenancy.kubeopera.io/cloudspace":"a"}}}`), words(1)},
			{"pod security of the platform", patched(namespace(systemNamespace), `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted","a":"b"}}}`), words(1)},
		}
	}
	try(t, clerk(t, "clerk-of-names"), attempts("made by "+mine, "changed by "+mine))
	try(t, admin, attempts())
	for _, name := range []string{"tenant-platform-names", "platform-labels"} {
		remove(t, namespace(name))
	}
	merge(t, namespace(systemNamespace), `{"metadata":{"labels":{"a":null}}}`)
}

// What Kubernetes' controllers do to a host namespace, they still can; the API server's own count of what is used among it.
func TestKubernetesStillCountsAndEmptiesHostNamespaces(t *testing.T) {
	t.Parallel()
	const id = "counted"
	object := create(t, tenant(id))
	reach(t, object, "Ready")
	hard := &corev1.ResourceQuota{ObjectMeta: named("vcluster-"+id, "cloudspace-workload")}
	service := func(name string) string { return "system:serviceaccount:kube-system:" + name }
	try(t, identity(t, service("resourcequota-controller"), masters), []attempt{
		{"the count of a quota", statusPatched(hard, `{"status":{"used":{"pods":"0"}}}`), ""},
		{"nothing else of it", patched(hard, `{"spec":{"hard":{"pods":"1000"}}}`), noHand},
		{"nor, with the count, which spec it follows", statusPatched(hard, `{"metadata":{"annotations":{"tenancy.kubeopera.io/generation":"99"}}}`), noHand},
		{"nor whose it is", statusPatched(hard, `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":"a"}}}`), noHand},
	})
	pod := podIn("vcluster-"+id, "counts", nil)
	if err := identity(t, "system:serviceaccount:vcluster-"+id+":vc-"+id, masters).Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(g gomega.Gomega) { g.Expect(get(t, hard).Status.Used.Pods().Value()).To(gomega.BeEquivalentTo(1)) })
	for _, name := range []string{"namespace-controller", "generic-garbage-collector"} {
		try(t, identity(t, service(name), masters), []attempt{
			{name + " empties", deleted(networkPolicy("vcluster-"+id, "cloudspace")), ""},
			{name + " makes nothing", made(networkPolicy("vcluster-"+id, "open")), noHand},
		})
		eventually(t, func(g gomega.Gomega) {
			g.Expect(api.Get(t.Context(), client.ObjectKey{Namespace: "vcluster-" + id, Name: "cloudspace"}, &networkingv1.NetworkPolicy{})).To(gomega.Succeed())
		})
	}
	if err := api.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	remove(t, object)
	gone(t, namespace("vcluster-"+id))
}

// podIn is a pod as a syncer makes it.
func podIn(namespace, name string, alter func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: named(namespace, name), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "a", Image: "example.com/a:1"}}, PriorityClassName: "cloudspace-workload",
	}}
	if alter != nil {
		alter(pod)
	}
	return pod
}
