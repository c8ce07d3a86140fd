// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

const systemNamespace = "kubeopera-system"

func tenant(id string, alter ...func(*v1alpha1.Tenant)) *v1alpha1.Tenant {
	object := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: id}}
	for _, a := range alter {
		a(object)
	}
	return object
}

func cloudSpace(tenant, name string, alter ...func(*v1alpha1.CloudSpace)) *v1alpha1.CloudSpace {
	object := &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "tenant-" + tenant}}
	for _, a := range alter {
		a(object)
	}
	return object
}

// create makes an object; it is deleted when the test ends.
func create[T client.Object](t *testing.T, object T) T {
	t.Helper()
	if err := api.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
	t.Cleanup(func() {
		// The context of a test ends before its cleanup.
		if err := client.IgnoreNotFound(api.Delete(backgroundContext, object)); err != nil {
			t.Errorf("deleting %T %s: %v", object, object.GetName(), err)
		}
	})
	return object
}

// get reads an object as it stands.
func get[T client.Object](t *testing.T, object T) T {
	t.Helper()
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatalf("reading %T %s: %v", object, object.GetName(), err)
	}
	return object
}

// reach waits until an object is in a phase and its status speaks of its spec.
func reach[T client.Object](t *testing.T, object T, phase string) T {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
		g.Expect(phaseOf(object)).To(gomega.Equal(phase), "conditions: %v", statusOf(object))
		g.Expect(observedGeneration(object)).To(gomega.Equal(object.GetGeneration()))
	})
	return object
}

// says waits until a condition, written as type, status and reason, is there with a message that contains some words.
func says(t *testing.T, object client.Object, condition, words string) {
	t.Helper()
	kind, rest, _ := strings.Cut(condition, " ")
	eventually(t, func(g gomega.Gomega) {
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(gomega.Succeed())
		found := meta.FindStatusCondition(conditionsOf(object), kind)
		g.Expect(found).NotTo(gomega.BeNil(), "condition %s of %v", kind, conditionsOf(object))
		g.Expect(string(found.Status)+" "+found.Reason).To(gomega.Equal(rest), "condition %s: %s", kind, found.Message)
		g.Expect(found.Message).To(gomega.ContainSubstring(words))
	})
}

// remove deletes an object and waits until it is gone.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	if err := client.IgnoreNotFound(api.Delete(t.Context(), object)); err != nil {
		t.Fatal(err)
	}
	gone(t, object)
}

// gone waits until an object is not there any more.
func gone(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, func(g gomega.Gomega) {
		err := api.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%T %s: %v, %v", object, object.GetName(), err, statusOf(object))
	})
}

func conditionsOf(object client.Object) []metav1.Condition {
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		return o.Status.Conditions
	case *v1alpha1.CloudSpace:
		return o.Status.Conditions
	case *v1alpha1.TenantQuota:
		return o.Status.Conditions
	default:
		return nil
	}
}

func observedGeneration(object client.Object) int64 {
	switch o := object.(type) {
	case *v1alpha1.Tenant:
		return o.Status.ObservedGeneration
	case *v1alpha1.CloudSpace:
		return o.Status.ObservedGeneration
	case *v1alpha1.TenantQuota:
		return o.Status.ObservedGeneration
	default:
		return 0
	}
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func contextOf(kubeconfig []byte) string {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return ""
	}
	return config.CurrentContext
}

// documents splits a YAML file.
func documents(text string) []string {
	var found []string
	for document := range strings.SplitSeq(text, "\n---\n") {
		if strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(document), "---")) != "" {
			found = append(found, document)
		}
	}
	return found
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func quota(amounts map[string]string) v1alpha1.QuotaAmounts {
	made := v1alpha1.QuotaAmounts{}
	for kind, amount := range amounts {
		made[v1alpha1.QuotaResource(kind)] = resource.MustParse(amount)
	}
	return made
}

func deploymentOf(id string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named("vcluster-"+id, id)}
}

// merge patches an object as kubectl patch --type merge does.
func merge(t *testing.T, object client.Object, patch string) {
	t.Helper()
	if err := api.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatalf("patching %T %s: %v", object, object.GetName(), err)
	}
}

func kindOf(object any) string {
	parts := strings.Split(fmt.Sprintf("%T", object), ".")
	return parts[len(parts)-1]
}
