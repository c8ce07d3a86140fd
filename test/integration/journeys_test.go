// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func TestATenantBecomesReady(t *testing.T) {
	t.Parallel()
	const id = "journey-one"
	object := reach(t, create(t, tenant(id, func(o *v1alpha1.Tenant) {
		o.Spec.Members = []v1alpha1.Member{
			{Kind: "User", Name: "kubeopera:alice", Role: "Owner"},
			{Kind: "ServiceAccount", Name: "gitops", Namespace: "tenant-" + id, Role: "Editor"},
		}
	})), "Ready")
	t.Run("through its phases in order", func(t *testing.T) {
		if diff := cmp.Diff([]string{"Pending", "Provisioning", "InstallingFlux", "Ready"}, statuses.phases(t, object)); diff != "" {
			t.Errorf("phases of the Tenant (-want +got):\n%s", diff)
		}
		space := get(t, cloudSpace(id, "default"))
		if diff := cmp.Diff([]string{"Provisioning", "InstallingFlux", "Active"}, statuses.phases(t, space)); diff != "" {
			t.Errorf("phases of the CloudSpace (-want +got):\n%s", diff)
		}
		var timeline []string
		for _, entry := range space.Status.Timeline {
			timeline = append(timeline, entry.Phase)
		}
		if diff := cmp.Diff([]string{"Pending", "Provisioning", "InstallingFlux", "Active"}, timeline); diff != "" {
			t.Errorf("timeline of the CloudSpace (-want +got):\n%s", diff)
		}
	})
	t.Run("its status names what it has", func(t *testing.T) {
		made := get(t, namespace("tenant-"+id))
		if object.Status.Namespace != made.Name || object.Status.NamespaceUID != string(made.UID) {
			t.Errorf("namespace %s with UID %s, want that of %s, %s", object.Status.Namespace, object.Status.NamespaceUID, made.Name, made.UID)
		}
		if object.Status.CloudSpaces != (v1alpha1.CloudSpaceCounts{Total: 1, Active: 1}) {
			t.Errorf("counts %+v", object.Status.CloudSpaces)
		}
	})
	t.Run("its members have their rights", func(t *testing.T) {
		for name, want := range map[string][]rbacv1.Subject{
			"cloudspace-owner":  {{APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "kubeopera:alice"}},
			"cloudspace-editor": {{Kind: "ServiceAccount", Name: "gitops", Namespace: "tenant-" + id}},
			"cloudspace-viewer": nil,
		} {
			binding := get(t, &rbacv1.RoleBinding{ObjectMeta: named("tenant-"+id, name)})
			if diff := cmp.Diff(want, binding.Subjects); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
	t.Run("both kubeconfig Secrets hold the same text under both keys", func(t *testing.T) {
		own, copied := get(t, secret(systemNamespace, "cloudspace-"+id+"-kubeconfig")), get(t, secret(systemNamespace, object.Status.KubeconfigSecret))
		text := own.Data["value"]
		for name, got := range map[string][]byte{"config": own.Data["config"], "copied value": copied.Data["value"], "copied config": copied.Data["config"]} {
			if !bytes.Equal(got, text) {
				t.Errorf("%s differs", name)
			}
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(text)
		if err != nil || config.Host != "https://"+id+".vcluster-"+id+".svc:443" || len(config.CAData) == 0 || len(config.KeyData) == 0 {
			t.Errorf("it leads to %v, %v", config, err)
		}
	})
	t.Run("what was made carries the labels of its owner", func(t *testing.T) {
		space := get(t, cloudSpace(id, "default"))
		for _, made := range hostObjects(id) {
			want := map[string]string{
				"tenancy.kubeopera.io/tenant": id, "tenancy.kubeopera.io/cloudspace": "default", "tenancy.kubeopera.io/owner-uid": string(space.UID),
			}
			get(t, made)
			for key, value := range want {
				if made.GetLabels()[key] != value {
					t.Errorf("%T %s: label %s is %q, want %q", made, made.GetName(), key, made.GetLabels()[key], value)
				}
			}
			if len(made.GetOwnerReferences()) > 0 {
				t.Errorf("%T %s has an owner reference: it would cross namespaces", made, made.GetName())
			}
		}
	})
}

func TestTwoCloudSpacesAndTwoTenantsAreApart(t *testing.T) {
	t.Parallel()
	alice, bob := create(t, tenant("apart-alice")), create(t, tenant("apart-bob"))
	reach(t, alice, "Ready")
	staging := reach(t, create(t, cloudSpace("apart-alice", "staging", func(c *v1alpha1.CloudSpace) {
		c.Spec.ControlPlane.Size = "Medium"
		c.Spec.Resources.CPU, c.Spec.Resources.Memory = resource.MustParse("4"), resource.MustParse("8Gi")
	})), "Active")
	reach(t, bob, "Ready")
	if staging.Status.HostNamespace != "vcluster-apart-alice--staging" || staging.Status.Kubeconfig.Secret != "cloudspace-apart-alice--staging-kubeconfig" {
		t.Errorf("staging has %s and %s", staging.Status.HostNamespace, staging.Status.Kubeconfig.Secret)
	}
	texts := map[string]bool{}
	for _, host := range []string{"apart-alice", "apart-alice--staging", "apart-bob"} {
		get(t, namespace("vcluster-"+host))
		texts[string(get(t, secret(systemNamespace, "cloudspace-"+host+"-kubeconfig")).Data["value"])] = true
	}
	if len(texts) != 3 {
		t.Errorf("three CloudSpaces have %d kubeconfigs", len(texts))
	}
	eventually(t, func(g gomega.Gomega) {
		g.Expect(get(t, alice).Status.CloudSpaces).To(gomega.Equal(v1alpha1.CloudSpaceCounts{Total: 2, Active: 2}))
	})
	t.Run("deleting one leaves the other", func(t *testing.T) {
		remove(t, staging)
		gone(t, namespace("vcluster-apart-alice--staging"))
		if object := get(t, cloudSpace("apart-alice", "default")); object.Status.Phase != "Active" || get(t, namespace("vcluster-apart-alice")).DeletionTimestamp != nil {
			t.Errorf("the default CloudSpace is %s", object.Status.Phase)
		}
		eventually(t, func(g gomega.Gomega) {
			g.Expect(get(t, alice).Status.CloudSpaces).To(gomega.Equal(v1alpha1.CloudSpaceCounts{Total: 1, Active: 1}))
		})
	})
}

// GitOps applies everything in one go, in any order: a CloudSpace waits for its Tenant, and a Tenant takes the namespace that an
// administrator made for it.
func TestObjectsCanComeInAnyOrder(t *testing.T) {
	t.Parallel()
	const id = "any-order"
	beforehand := namespace("tenant-" + id)
	beforehand.Labels = map[string]string{"tenancy.kubeopera.io/tenant": id, "example.com/team": "blue"}
	create(t, beforehand)
	space := create(t, cloudSpace(id, "staging"))
	says(t, space, "QuotaReserved False TenantNotFound", "waiting for Tenant "+id)
	if space.Status.Phase != "Pending" {
		t.Errorf("the phase is %s, want Pending", space.Status.Phase)
	}
	object := reach(t, create(t, tenant(id)), "Ready")
	reach(t, space, "Active")
	taken := get(t, beforehand)
	if taken.Labels["example.com/team"] != "blue" || taken.Labels["tenancy.kubeopera.io/owner-uid"] != string(object.UID) {
		t.Errorf("labels are %v", taken.Labels)
	}
}

func TestACloudSpaceOutsideOfATenantsNamespaceIsRefused(t *testing.T) {
	t.Parallel()
	object := create(t, &v1alpha1.CloudSpace{ObjectMeta: named("default", "outside")})
	reach(t, object, "Failed")
	says(t, object, "Stalled True TenantNotFound", "a CloudSpace must be in the namespace of a Tenant, tenant-<id>")
	if object.Status.HostNamespace != "" {
		t.Errorf("it has the host namespace %s", object.Status.HostNamespace)
	}
	remove(t, object)
}

// The name of a namespace is anybody's to choose; the label is not.
func TestACloudSpaceInANamespaceThatOnlyHasTheNameIsRefused(t *testing.T) {
	t.Parallel()
	const id = "only-name"
	create(t, namespace("tenant-"+id))
	space := create(t, cloudSpace(id, "default"))
	object := create(t, tenant(id))
	says(t, object, "NamespaceReady False NotOurs", "Namespace tenant-only-name exists and was not made for this object; it is left alone")
	says(t, space, "QuotaReserved False TenantNotFound", "waiting for namespace tenant-only-name to become that of Tenant only-name")
	if object.Status.NamespaceUID != "" {
		t.Errorf("status.namespaceUID is %s: it is trusted", object.Status.NamespaceUID)
	}
}

func TestTheTemplateIsCarriedOverAndEditsAreKept(t *testing.T) {
	t.Parallel()
	const id = "template"
	object := reach(t, create(t, tenant(id)), "Ready")
	space := cloudSpace(id, "default")
	hasCPU := func(want string) {
		t.Helper()
		eventually(t, func(g gomega.Gomega) {
			g.Expect(get(t, space).Spec.Resources.CPU.String()).To(gomega.Equal(want))
			g.Expect(get(t, &corev1.ResourceQuota{ObjectMeta: named("vcluster-"+id, "cloudspace")}).Spec.Hard["requests.cpu"]).To(gomega.Equal(space.Spec.Resources.CPU))
		})
	}
	merge(t, space, `{"spec":{"resources":{"cpu":"3"}}}`)
	hasCPU("3")
	reach(t, space, "Active")
	merge(t, object, `{"spec":{"displayName":"Somebody","members":[{"kind":"User","name":"kubeopera:a","role":"Owner"}]}}`)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(get(t, &rbacv1.RoleBinding{ObjectMeta: named("tenant-"+id, "cloudspace-owner")}).Subjects).To(gomega.HaveLen(1))
	})
	hasCPU("3")
	merge(t, object, `{"spec":{"defaultCloudSpace":{"template":{"spec":{"resources":{"cpu":"5"}}}}}}`)
	hasCPU("5")
	reach(t, object, "Ready")
}

func TestARotatedKubeconfigIsFollowed(t *testing.T) {
	t.Parallel()
	const id = "rotation"
	object := reach(t, create(t, tenant(id)), "Ready")
	before := get(t, secret(systemNamespace, object.Status.KubeconfigSecret)).Data["value"]
	fresh, err := newKubeconfig(serverOf(id), time.Now().Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	source := get(t, secret("vcluster-"+id, "vc-"+id))
	source.Data["config"] = fresh
	if err := api.Update(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(g gomega.Gomega) {
		for _, name := range []string{"cloudspace-" + id + "-kubeconfig", "tenant-" + id + "-kubeconfig"} {
			g.Expect(string(get(t, secret(systemNamespace, name)).Data["value"])).NotTo(gomega.Equal(string(before)), name)
		}
		expires := get(t, cloudSpace(id, "default")).Status.Kubeconfig.Expires
		g.Expect(time.Until(expires.Time)).To(gomega.BeNumerically("<", 25*time.Hour))
	})
	if n := flux.times("cloudspace-" + id); n < 2 {
		t.Errorf("Flux was asked %d times, want again with the new kubeconfig", n)
	}
}

// Whoever can write in a host namespace can leave any kubeconfig there. What is stored stays, and it is said what is wrong.
func TestAHostileKubeconfigDoesNotReplaceTheOneThatIsStored(t *testing.T) {
	t.Parallel()
	const id = "replaced"
	object := reach(t, create(t, tenant(id)), "Ready")
	stored := secret(systemNamespace, "cloudspace-"+id+"-kubeconfig")
	before := get(t, stored).Data["value"]
	source := get(t, secret("vcluster-"+id, "vc-"+id))
	good := source.Data["config"]
	evil, err := newKubeconfig("https://evil.example.com", time.Now().Add(24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string][]byte{
		"another server": evil,
		"a proxy":        bytes.Replace(good, []byte("    server: "), []byte("    proxy-url: http://evil.example.com:3128\n    server: "), 1),
		"a plugin": bytes.Replace(good, []byte("    client-key-data: "),
			[]byte("    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/evil, interactiveMode: Never}\n    client-key-data: "), 1),
		"very much": append(bytes.Clone(good), bytes.Repeat([]byte("#"), 900<<10)...),
	} {
		if bytes.Equal(text, good) {
			t.Fatalf("%s: nothing was altered", what)
		}
		source = get(t, secret("vcluster-"+id, "vc-"+id))
		source.Data["config"] = text
		if err := api.Update(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		says(t, cloudSpace(id, "default"), "KubeconfigReady False KubeconfigInvalid", "the control plane's kubeconfig is not used: it")
		if !bytes.Equal(get(t, stored).Data["value"], before) {
			t.Errorf("%s: what is stored was replaced", what)
		}
		source.Data["config"] = good
		if err := api.Update(t.Context(), source); err != nil {
			t.Fatal(err)
		}
		says(t, object, "Ready True Provisioned", "")
	}
}

func TestAKubeconfigThatIsNotToBeTrustedIsNotUsed(t *testing.T) {
	t.Parallel()
	const id = "untrusted"
	theStandIn.behave("vcluster-"+id, behaviour{kubeconfig: "apiVersion: v1\nkind: Config\ncurrent-context: x\n"})
	object := create(t, tenant(id))
	says(t, cloudSpace(id, "default"), "KubeconfigReady False KubeconfigInvalid", "the control plane's kubeconfig is not used: it has no current context")
	reach(t, object, "Failed")
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(secret(systemNamespace, "cloudspace-"+id+"-kubeconfig")), &corev1.Secret{}); err == nil {
		t.Error("a Secret was stored")
	}
	theStandIn.behave("vcluster-"+id, behaviour{})
	if err := api.Delete(t.Context(), secret("vcluster-"+id, "vc-"+id)); err != nil {
		t.Fatal(err)
	}
	merge(t, get(t, deploymentOf(id)), `{"metadata":{"annotations":{"example.com/look":"again"}}}`)
	reach(t, object, "Ready")
	if phases := statuses.phases(t, object); !slices.Contains(phases, "Failed") {
		t.Errorf("phases were %v, want Failed among them", phases)
	}
}

func TestWhatWentWrongIsToldAndMended(t *testing.T) {
	t.Parallel()
	tests := []struct {
		id                  string
		breaks              func(id string)
		mends               func(id string)
		kind, reason, words string
	}{
		{
			id: "wrong-install", kind: "ControlPlaneReady", reason: "InstallFailed", words: "installing the control plane failed: Helm install failed for release",
			breaks: func(id string) { theStandIn.behave(id, behaviour{fail: "context deadline exceeded"}) },
			mends:  func(id string) { theStandIn.behave(id, behaviour{}) },
		},
		{
			id: "wrong-etcd", kind: "ControlPlaneReady", reason: "Starting", words: "waiting for etcd of the control plane",
			breaks: func(id string) { theStandIn.behave(id+"-etcd", behaviour{hang: true}) },
			mends:  func(id string) { theStandIn.behave(id+"-etcd", behaviour{}) },
		},
		{
			id: "wrong-quota", kind: "PoliciesApplied", reason: "WaitingForQuota", words: "waiting for the quota of the host namespace to be enforced",
			breaks: func(id string) { theStandIn.behave("cloudspace.vcluster-"+id, behaviour{hang: true}) },
			mends:  func(id string) { theStandIn.behave("cloudspace.vcluster-"+id, behaviour{}) },
		},
		{
			id: "wrong-flux", kind: "FluxReady", reason: "InstallFailed", words: "installing Flux failed: ",
			breaks: func(id string) { theStandIn.behave(id+"-flux", behaviour{fail: "no space"}) },
			mends:  func(id string) { theStandIn.behave(id+"-flux", behaviour{}) },
		},
		{
			id: "wrong-inside", kind: "FluxReady", reason: "WaitingForFlux", words: "waiting for helm-controller",
			breaks: func(id string) { flux.set("cloudspace-"+id, "helm-controller") },
			mends:  func(id string) { flux.set("cloudspace-"+id, "") },
		},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			t.Parallel()
			tt.breaks(tt.id)
			object := create(t, tenant(tt.id))
			says(t, cloudSpace(tt.id, "default"), tt.kind+" False "+tt.reason, tt.words)
			says(t, object, "Ready False "+tt.reason, tt.words)
			tt.mends(tt.id)
			reach(t, object, "Ready")
		})
	}
}

// An outage after the first Ready is told, and the phases stay.
func TestAnOutageIsDegradedAndThePhasesStay(t *testing.T) {
	t.Parallel()
	const id = "outage"
	object := reach(t, create(t, tenant(id)), "Ready")
	server := get(t, deploymentOf(id))
	theStandIn.behave("vcluster-"+id, behaviour{hang: true})
	merge(t, server, `{"spec":{"template":{"metadata":{"annotations":{"example.com/roll":"1"}}}}}`)
	says(t, object, "Ready False Degraded", "waiting for the API server of the control plane")
	if space := get(t, cloudSpace(id, "default")); object.Status.Phase != "Ready" || space.Status.Phase != "Active" {
		t.Errorf("phases are %s and %s, want Ready and Active", object.Status.Phase, space.Status.Phase)
	}
	theStandIn.behave("vcluster-"+id, behaviour{})
	says(t, object, "Ready True Provisioned", "")
}

func TestAnUnsupportedVersionIsRefusedUntilTheSpecIsMended(t *testing.T) {
	t.Parallel()
	const id = "version"
	object := create(t, tenant(id, func(o *v1alpha1.Tenant) {
		o.Spec.DefaultCloudSpace.Template.Spec.KubernetesVersion = "v1.20.0"
	}))
	reach(t, object, "Failed")
	says(t, object, "Stalled True UnsupportedVersion", "Kubernetes v1.20.0 is not offered; offered are v1.36.0")
	merge(t, object, `{"spec":{"defaultCloudSpace":{"template":{"spec":{"kubernetesVersion":"v1.36.0"}}}}}`)
	reach(t, object, "Ready")
}
