// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"slices"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/tantilium/cloud-runner/apis/client/clientset/versioned"
	"github.com/tantilium/cloud-runner/apis/client/informers/externalversions"
	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
)

// follow keeps all CloudSpaces that a caller sees, and gives those in a state. docs/view-api.md has it as an example.
func follow(ctx context.Context, config *rest.Config) (inState func(viewv1alpha1.State) ([]string, error), err error) {
	client, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := externalversions.NewSharedInformerFactory(client, 0)
	spaces := factory.View().V1alpha1().CloudSpaces().Lister()
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).Err; err != nil {
		return nil, err
	}
	return func(state viewv1alpha1.State) (found []string, err error) {
		all, err := spaces.List(labels.Everything())
		for _, space := range all {
			if space.Status.State == state {
				found = append(found, space.Namespace+"/"+space.Name)
			}
		}
		slices.Sort(found)
		return found, err
	}, nil
}

// The generated clientset, informers and listers speak with the view as with any API.
func TestGeneratedClients(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "clients-a", member("clients-alice", tenancyv1alpha1.MemberOwner))
	newTenant(t, "clients-b", member("clients-bob", tenancyv1alpha1.MemberOwner))
	newCloudSpace(t, "clients-a", "works")
	newCloudSpace(t, "clients-b", "theirs")
	alice := known(t, customer("clients-alice", "clients-a"))
	inState, err := follow(t.Context(), alice.config())
	g.Expect(err).NotTo(gomega.HaveOccurred())

	fails := newCloudSpace(t, "clients-a", "fails")
	for _, o := range []*tenancyv1alpha1.CloudSpace{fails, newCloudSpace(t, "clients-b", "fails")} {
		o.Status.Phase = tenancyv1alpha1.CloudSpaceFailed
		g.Expect(admin.Status().Update(t.Context(), o)).To(gomega.Succeed())
	}
	eventually(t, func(g gomega.Gomega) {
		g.Expect(inState(viewv1alpha1.StateFailed)).To(gomega.Equal([]string{"tenant-clients-a/fails"}))
	})
	client, err := versioned.NewForConfig(alice.config())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	failed, err := client.ViewV1alpha1().CloudSpaces("tenant-clients-a").List(t.Context(), metav1.ListOptions{FieldSelector: "status.state=failed"})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(failed.Items).To(gomega.HaveLen(1))
	failed.Items[0].Spec.DisplayName = "Mended"
	mended, err := client.ViewV1alpha1().CloudSpaces("tenant-clients-a").Update(t.Context(), &failed.Items[0], metav1.UpdateOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(mended.Spec.DisplayName).To(gomega.Equal("Mended"))
}
