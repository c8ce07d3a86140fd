// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// owner gives what an Owner of a new tenant sees of its namespace.
func owner(t *testing.T, id string) dynamic.ResourceInterface {
	t.Helper()
	newTenant(t, id, member(id+"-alice", tenancyv1alpha1.MemberOwner))
	alice := known(t, customer(id+"-alice", id))
	return alice.sees(t, cloudSpaces).Namespace("tenant-" + id)
}

// storedAs reads what is stored.
func storedAs(t *testing.T, tenant, name string) *tenancyv1alpha1.CloudSpace {
	t.Helper()
	o := &tenancyv1alpha1.CloudSpace{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "tenant-" + tenant, Name: name}, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(backgroundContext, o) })
	return o
}

func TestAnOwnerMakesChangesAndDeletes(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	mine := owner(t, "writes")
	o := named("writes", "staging")
	g.Expect(unstructured.SetNestedField(o.Object, "1000m", "spec", "resources", "cpu")).To(gomega.Succeed())
	made, err := mine.Create(t.Context(), o, metav1.CreateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(made.GetAPIVersion()).To(gomega.Equal("view.kubeopera.io/v1alpha1"))
	g.Expect(made.GetGeneration()).To(gomega.BeEquivalentTo(1))
	cpu, _, _ := unstructured.NestedString(made.Object, "spec", "resources", "cpu")
	g.Expect(cpu).To(gomega.Equal("1000m"), "what is asked for stays as it was written")
	storedAs(t, "writes", "staging")

	_, err = mine.Create(t.Context(), named("writes", "staging"), metav1.CreateOptions{})
	g.Expect(apierrors.IsAlreadyExists(err)).To(gomega.BeTrue(), "%v", err)
	g.Expect(err.Error()).To(gomega.Equal(`cloudspaces.view.kubeopera.io "staging" already exists`))

	g.Expect(unstructured.SetNestedField(made.Object, "Staging", "spec", "displayName")).To(gomega.Succeed())
	changed, err := mine.Update(t.Context(), made, metav1.UpdateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(changed.GetGeneration()).To(gomega.BeEquivalentTo(2))
	_, err = mine.Update(t.Context(), made, metav1.UpdateOptions{})
	g.Expect(apierrors.IsConflict(err)).To(gomega.BeTrue(), "a stale object is not written: %v", err)

	wrong := types.UID("11111111-2222-4333-8444-555555555555")
	err = mine.Delete(t.Context(), "staging", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
	g.Expect(apierrors.IsConflict(err)).To(gomega.BeTrue(), "%v", err)
	uid := made.GetUID()
	g.Expect(err.Error()).To(gomega.And(gomega.ContainSubstring(string(wrong)), gomega.ContainSubstring(string(uid))), "UIDs are those of the view")
	g.Expect(mine.Delete(t.Context(), "staging", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})).To(gomega.Succeed())
	_, err = mine.Get(t.Context(), "staging", metav1.GetOptions{})
	g.Expect(err).To(gomega.MatchError(`cloudspaces.view.kubeopera.io "staging" not found`))
}

func TestADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	mine := owner(t, "dry")
	all := []string{metav1.DryRunAll}
	_, err := mine.Create(t.Context(), named("dry", "new"), metav1.CreateOptions{DryRun: all})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = mine.Apply(t.Context(), "applied", named("dry", "applied"), metav1.ApplyOptions{FieldManager: "test", DryRun: all})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	newCloudSpace(t, "dry", "one")
	before := storedAs(t, "dry", "one").ResourceVersion
	one, err := mine.Get(t.Context(), "one", metav1.GetOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(unstructured.SetNestedField(one.Object, "One", "spec", "displayName")).To(gomega.Succeed())
	updated, err := mine.Update(t.Context(), one, metav1.UpdateOptions{DryRun: all})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	name, _, _ := unstructured.NestedString(updated.Object, "spec", "displayName")
	g.Expect(name).To(gomega.Equal("One"), "the answer is as if it had been written")
	_, err = mine.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"spec":{"displayName":"One"}}`), metav1.PatchOptions{DryRun: all})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = mine.Patch(t.Context(), "one", types.JSONPatchType, []byte(`[{"op":"add","path":"/spec/displayName","value":"One"}]`), metav1.PatchOptions{DryRun: all})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(mine.Delete(t.Context(), "one", metav1.DeleteOptions{DryRun: all})).To(gomega.Succeed())
	g.Expect(mine.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: all}, metav1.ListOptions{})).To(gomega.Succeed())
	g.Expect(storedAs(t, "dry", "one").ResourceVersion).To(gomega.Equal(before))
	list, err := mine.List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(list.Items).To(gomega.HaveLen(1))
}

func TestApplying(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	mine := owner(t, "apply")
	configured := func(spec map[string]any) *unstructured.Unstructured {
		o := named("apply", "one")
		o.Object["spec"] = spec
		return o
	}
	apply := func(manager string, force bool, spec map[string]any) (*unstructured.Unstructured, error) {
		return mine.Apply(t.Context(), "one", configured(spec), metav1.ApplyOptions{FieldManager: manager, Force: force})
	}
	_, err := apply("alice", false, map[string]any{"displayName": "One", "suspend": false})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	// The operator has looked at it: before that, kube-apiserver has not stored the default of its status.
	setPhase(t, storedAs(t, "apply", "one"), tenancyv1alpha1.CloudSpacePending)
	first := storedAs(t, "apply", "one").ResourceVersion
	again, err := apply("alice", false, map[string]any{"displayName": "One", "suspend": false})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(again.GetResourceVersion()).To(gomega.Equal(first), "a second apply changes nothing")

	_, err = apply("bob", false, map[string]any{"displayName": "Bob's"})
	g.Expect(apierrors.IsConflict(err)).To(gomega.BeTrue(), "another manager has its conflict: %v", err)
	g.Expect(err.Error()).To(gomega.ContainSubstring(`conflict with "alice"`))

	fewer, err := apply("alice", false, map[string]any{"suspend": false})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, found, _ := unstructured.NestedString(fewer.Object, "spec", "displayName")
	g.Expect(found).To(gomega.BeFalse(), "a field that is left out is removed")

	o := storedAs(t, "apply", "one")
	g.Expect(admin.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"displayName":"The operator's"}}`)), client.FieldOwner("tenant-controller"))).To(gomega.Succeed())
	_, err = apply("alice", false, map[string]any{"displayName": "Alice's", "suspend": false})
	g.Expect(apierrors.IsConflict(err)).To(gomega.BeTrue(), "so has one that writes what is stored: %v", err)
	_, err = apply("alice", true, map[string]any{"displayName": "Alice's", "suspend": false})
	g.Expect(err).NotTo(gomega.HaveOccurred())
}

// Who may change CloudSpaces, but not make them, makes none by applying.
func TestAnEditorMakesNothingByApplying(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "editor", member("editor-eve", tenancyv1alpha1.MemberEditor))
	eve := known(t, customer("editor-eve", "editor")).sees(t, cloudSpaces).Namespace("tenant-editor")
	options := metav1.ApplyOptions{FieldManager: "eve"}
	_, err := eve.Apply(t.Context(), "new", named("editor", "new"), options)
	g.Expect(apierrors.IsForbidden(err)).To(gomega.BeTrue(), "%v", err)
	newCloudSpace(t, "editor", "one")
	o := named("editor", "one")
	o.Object["spec"] = map[string]any{"displayName": "Eve's"}
	_, err = eve.Apply(t.Context(), "one", o, options)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	_, err = eve.Create(t.Context(), named("editor", "other"), metav1.CreateOptions{})
	g.Expect(apierrors.IsForbidden(err)).To(gomega.BeTrue(), "%v", err)
	g.Expect(apierrors.IsForbidden(eve.Delete(t.Context(), "one", metav1.DeleteOptions{}))).To(gomega.BeTrue())
}

// Whichever way it is written, nobody sets what the platform relies on, and nothing that is hidden comes out.
func TestWhatNobodyWrites(t *testing.T) {
	t.Parallel()
	mine := owner(t, "nobody")
	newCloudSpace(t, "nobody", "one")
	o := storedAs(t, "nobody", "one")
	o.Status.HostNamespace = "vcluster-canary"
	if err := admin.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	before := storedAs(t, "nobody", "one")
	for name, metadata := range map[string]string{
		"finalizers":                       `{"finalizers":["example.com/hold"]}`,
		"owners":                           `{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}`,
		"labels of the platform":           `{"labels":{"tenancy.kubeopera.io/owner-uid":"a"}}`,
		"annotations of the platform":      `{"annotations":{"tenancy.kubeopera.io/template":"2"}}`,
		"a generation of the host's quota": `{"annotations":{"tenancy.kubeopera.io/generation":"9"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			for way, err := range everyWay(t, mine, "one", metadata) {
				g.Expect(err).To(gomega.HaveOccurred(), way)
				g.Expect(err.Error()).To(gomega.ContainSubstring("cannot be"), way)
				g.Expect(err.Error()).NotTo(gomega.ContainSubstring("tenancy.kubeopera.io \""), way)
			}
		})
	}
	g := gomega.NewWithT(t)
	_, err := mine.Patch(t.Context(), "one", types.JSONPatchType,
		[]byte(`[{"op":"test","path":"/status/hostNamespace","value":"vcluster-canary"}]`), metav1.PatchOptions{})
	g.Expect(err).To(gomega.HaveOccurred(), "patches are of what is shown")
	copied, err := mine.Patch(t.Context(), "one", types.JSONPatchType,
		[]byte(`[{"op":"copy","from":"/status/hostNamespace","path":"/spec/displayName"}]`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil {
		_, found, _ := unstructured.NestedString(copied.Object, "spec", "displayName")
		g.Expect(found).To(gomega.BeFalse(), "%v", copied)
	}
	patched, err := mine.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"status":{"state":"active","phase":"Pending","message":"forged"}}`), metav1.PatchOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	text, err := json.Marshal(patched)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(string(text)).NotTo(gomega.Or(gomega.ContainSubstring("canary"), gomega.ContainSubstring("forged")))
	after := storedAs(t, "nobody", "one")
	g.Expect(after.ResourceVersion).To(gomega.Equal(before.ResourceVersion))
}

// everyWay tries to set metadata by each kind of write.
func everyWay(t *testing.T, mine dynamic.ResourceInterface, name, metadata string) map[string]error {
	t.Helper()
	errs := map[string]error{}
	live, err := mine.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, errs["merge patch"] = mine.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":`+metadata+`}`), metav1.PatchOptions{})
	var ops []map[string]any
	altered, made, applied := live.DeepCopy(), named("nobody", "new"), named("nobody", name)
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(metadata), &fields); err != nil {
		t.Fatal(err)
	}
	for key, value := range fields {
		ops = append(ops, map[string]any{"op": "add", "path": "/metadata/" + key, "value": value})
		for _, o := range []*unstructured.Unstructured{altered, made, applied} {
			if err := unstructured.SetNestedField(o.Object, value, "metadata", key); err != nil {
				t.Fatal(err)
			}
		}
	}
	patch, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	_, errs["JSON patch"] = mine.Patch(t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{})
	_, errs["update"] = mine.Update(t.Context(), altered, metav1.UpdateOptions{})
	_, errs["create"] = mine.Create(t.Context(), made, metav1.CreateOptions{})
	_, errs["apply"] = mine.Apply(t.Context(), name, applied, metav1.ApplyOptions{FieldManager: "test"})
	return errs
}

// What is hidden is still there after somebody wrote an object that does not have it.
func TestWhatIsHiddenOutlivesAnUpdate(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	mine := owner(t, "hidden")
	newCloudSpace(t, "hidden", "one")
	live, err := mine.Get(t.Context(), "one", metav1.GetOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	live.SetAnnotations(map[string]string{"example.com/note": "a", tenancyv1alpha1.AnnotationRetryRequested: "1"})
	_, err = mine.Update(t.Context(), live, metav1.UpdateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	o := storedAs(t, "hidden", "one")
	g.Expect(o.Finalizers).To(gomega.Equal([]string{tenancyv1alpha1.FinalizerCloudSpace}))
	g.Expect(o.Annotations).To(gomega.Equal(map[string]string{
		"example.com/note": "a", tenancyv1alpha1.AnnotationRetryRequested: "1", tenancyv1alpha1.AnnotationTemplate: "1",
	}))
}

func TestErrorsSpeakOfTheView(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	mine := owner(t, "errors")
	invalid := named("errors", "Bad-Name")
	_, err := mine.Create(t.Context(), invalid, metav1.CreateOptions{})
	g.Expect(apierrors.IsInvalid(err)).To(gomega.BeTrue(), "%v", err)
	unknown := named("errors", "one")
	unknown.Object["spec"] = map[string]any{"cpus": "4"}
	_, err = mine.Create(t.Context(), unknown, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	g.Expect(err).To(gomega.HaveOccurred())
	g.Expect(err.Error()).To(gomega.ContainSubstring(`unknown field "spec.cpus"`))
	for _, err := range []error{err} {
		g.Expect(strings.Contains(err.Error(), "tenancy.kubeopera.io")).To(gomega.BeFalse(), "%v", err)
	}
	protected := newCloudSpace(t, "errors", "kept")
	protected.Spec.DeletionProtection = true
	g.Expect(admin.Update(t.Context(), protected)).To(gomega.Succeed())
	err = mine.Delete(t.Context(), "kept", metav1.DeleteOptions{})
	g.Expect(apierrors.IsForbidden(err) || apierrors.IsInvalid(err)).To(gomega.BeTrue(), "%v", err)
	g.Expect(err.Error()).To(gomega.ContainSubstring("deletionProtection"))
	protected.Spec.DeletionProtection = false
	g.Expect(admin.Update(t.Context(), protected)).To(gomega.Succeed())
}

// Who calls themselves what the operator calls itself does not come by what it owns.
func TestNobodyWritesAsTheOperator(t *testing.T) {
	t.Parallel()
	mine := owner(t, "forged")
	o := newCloudSpace(t, "forged", "one")
	held := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"finalizers": []any{"tenancy.kubeopera.io/held"}, "annotations": map[string]any{"tenancy.kubeopera.io/generation": "1"},
		"labels":          map[string]any{"tenancy.kubeopera.io/held": "1"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": "tenant-forged", "uid": string(o.UID)}},
	}}}
	held.SetGroupVersionKind(tenancyv1alpha1.SchemeGroupVersion.WithKind("CloudSpace"))
	held.SetNamespace(o.Namespace)
	held.SetName(o.Name)
	if err := admin.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(held), client.FieldOwner("tenant-controller"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	stored := func() *tenancyv1alpha1.CloudSpace { return storedAs(t, "forged", "one") }
	before := stored()
	live, err := mine.Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unowned := live.DeepCopy()
	if err := unstructured.SetNestedSlice(unowned.Object, []any{map[string]any{}}, "metadata", "managedFields"); err != nil {
		t.Fatal(err)
	}
	operations := func(patch string) func() error {
		return func() error {
			_, err := mine.Patch(t.Context(), "one", types.JSONPatchType, []byte(patch), metav1.PatchOptions{FieldManager: "tenant-controller"})
			return err
		}
	}
	for name, write := range map[string]func() error{
		"applying as it, without what it has": func() error {
			_, err := mine.Apply(t.Context(), "one", named("forged", "one"), metav1.ApplyOptions{FieldManager: "tenant-controller", Force: true})
			return err
		},
		"an update without owners of fields": func() error {
			_, err := mine.Update(t.Context(), unowned, metav1.UpdateOptions{})
			return err
		},
		"owners of fields removed":   operations(`[{"op":"remove","path":"/metadata/managedFields"}]`),
		"owners of fields reset":     operations(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`),
		"finalizers of null":         operations(`[{"op":"add","path":"/metadata/finalizers","value":null}]`),
		"finalizers of none":         operations(`[{"op":"add","path":"/metadata/finalizers","value":[]}]`),
		"annotations of none":        operations(`[{"op":"add","path":"/metadata/annotations","value":{}}]`),
		"labels of none":             operations(`[{"op":"remove","path":"/metadata/labels"}]`),
		"a status of one's own":      operations(`[{"op":"add","path":"/status","value":{"phase":"Active","state":"active","hostNamespace":"a"}}]`),
		"a deletion without a right": operations(`[{"op":"add","path":"/metadata/deletionTimestamp","value":"2020-01-01T00:00:00Z"}]`),
		"another generation":         operations(`[{"op":"replace","path":"/metadata/generation","value":99}]`),
		"another age":                operations(`[{"op":"replace","path":"/metadata/creationTimestamp","value":"2020-01-01T00:00:00Z"}]`),
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			_ = write() // it may be refused, or change nothing
			before, after := before.DeepCopy(), stored()
			before.ResourceVersion, after.ResourceVersion = "", ""
			before.ManagedFields, after.ManagedFields = nil, nil
			g.Expect(after).To(gomega.Equal(before))
		})
	}
	gomega.NewWithT(t).Expect(stored().ManagedFields).NotTo(gomega.BeEmpty())
}
