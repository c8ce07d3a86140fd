// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// kubernetesOwn is one of kube-controller-manager's controllers.
func kubernetesOwn(name string) person {
	return person{rest.ImpersonationConfig{
		UserName: "system:serviceaccount:kube-system:" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
	}}
}

// The garbage collector and quotas follow the metadata of everything, in protobuf. What does not sync holds up the whole host cluster.
func TestKubernetesFollowsMetadata(t *testing.T) {
	t.Parallel()
	newTenant(t, "metadata")
	o := newCloudSpace(t, "metadata", "one")
	for _, name := range []string{"generic-garbage-collector", "resourcequota-controller"} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			client, err := metadata.NewForConfig(kubernetesOwn(name).config())
			g.Expect(err).NotTo(gomega.HaveOccurred())
			informer := metadatainformer.NewFilteredMetadataInformer(client, cloudSpaces, "tenant-metadata", 0, nil, nil).Informer()
			go informer.RunWithContext(t.Context())
			g.Expect(cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced)).To(gomega.BeTrue())
			kept, found, err := informer.GetStore().GetByKey("tenant-metadata/one")
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(found).To(gomega.BeTrue())
			meta, ok := kept.(*metav1.PartialObjectMetadata)
			g.Expect(ok).To(gomega.BeTrue())
			g.Expect(meta.UID).NotTo(gomega.Equal(o.UID), "one UID for two objects confuses the garbage collector")
			g.Expect(meta.Finalizers).To(gomega.BeEmpty())
			remade := newCloudSpace(t, "metadata", "by-"+name[:7])
			eventually(t, func(g gomega.Gomega) {
				g.Expect(informer.GetStore().ListKeys()).To(gomega.ContainElement("tenant-metadata/" + remade.Name))
			})
		})
	}
}

// A watch speaks the form that it is asked for, of all that are served.
func TestWatchesOfEachForm(t *testing.T) {
	t.Parallel()
	newTenant(t, "forms")
	newCloudSpace(t, "forms", "one")
	for accept, want := range map[string]string{
		"application/json": `"kind":"CloudSpace"`,
		"application/json;as=Table;g=meta.k8s.io;v=v1":                                    `"columnDefinitions":[{"name":"Name"`,
		"application/json;as=Table;g=meta.k8s.io;v=v1beta1":                               `"apiVersion":"meta.k8s.io/v1beta1"`,
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1":                    `"kind":"PartialObjectMetadata"`,
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1":               `"apiVersion":"meta.k8s.io/v1beta1"`,
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1": "PartialObjectMetadata",
	} {
		for _, path := range []string{"PATH?watch=1&timeoutSeconds=1", "WATCH/one?timeoutSeconds=1"} {
			t.Run(accept+" "+path, func(t *testing.T) {
				t.Parallel()
				g := gomega.NewWithT(t)
				if path[0] == 'W' {
					path = "/apis/view.kubeopera.io/v1alpha1/watch/namespaces/tenant-forms/cloudspaces" + path[len("WATCH"):]
				}
				code, text := sent{http.MethodGet, path, "", accept, ""}.send(t, superAdmin(), "tenant-forms")
				g.Expect(code).To(gomega.Equal(http.StatusOK), text)
				g.Expect(text).To(gomega.ContainSubstring("ADDED"))
				g.Expect(text).To(gomega.ContainSubstring(want))
				g.Expect(text).NotTo(gomega.ContainSubstring(`"apiVersion":"tenancy.kubeopera.io`))
			})
		}
	}
}

// What is described can be done, and what can be done is described.
func TestWhatIsDescribedIsServed(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	client, err := discovery.NewDiscoveryClientForConfig(adminConfig)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	served, err := client.ServerResourcesForGroupVersion("view.kubeopera.io/v1alpha1")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	code, text := sent{http.MethodGet, "/openapi/v3/apis/view.kubeopera.io/v1alpha1", "", asis, ""}.send(t, superAdmin(), "")
	g.Expect(code).To(gomega.Equal(http.StatusOK), text)
	var described struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	g.Expect(json.Unmarshal([]byte(text), &described)).To(gomega.Succeed())
	for _, resource := range served.APIResources {
		verbs := map[string]bool{"watch": true} // a parameter of lists
		for path, operations := range described.Paths {
			if !slices.Contains(strings.Split(path, "/"), resource.Name) {
				continue
			}
			for method, operation := range operations {
				if method == "parameters" {
					continue
				}
				var of struct {
					Action string `json:"x-kubernetes-action"`
				}
				g.Expect(json.Unmarshal(operation, &of)).To(gomega.Succeed())
				verbs[strings.NewReplacer("post", "create", "put", "update").Replace(of.Action)] = true
			}
		}
		g.Expect(slices.Collect(maps.Keys(verbs))).To(gomega.ConsistOf([]string(resource.Verbs)), resource.Name)
	}
}
