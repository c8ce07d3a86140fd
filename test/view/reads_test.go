// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func TestEachSeesTheirOwn(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "own-a", member("own-alice", tenancyv1alpha1.MemberViewer))
	newTenant(t, "own-b", member("own-bob", tenancyv1alpha1.MemberOwner))
	newCloudSpace(t, "own-a", "one")
	newCloudSpace(t, "own-b", "two")
	alice := known(t, customer("own-alice", "own-a"))

	list, err := alice.sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(list.Items).To(gomega.HaveLen(1))
	g.Expect(list.Items[0].GetName()).To(gomega.Equal("one"))
	g.Expect(list.GetResourceVersion()).NotTo(gomega.BeEmpty())

	one, err := alice.sees(t, cloudSpaces).Namespace("tenant-own-a").Get(t.Context(), "one", metav1.GetOptions{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(one.GetFinalizers()).To(gomega.BeEmpty())
	_, err = alice.sees(t, cloudSpaces).Namespace("tenant-own-b").Get(t.Context(), "two", metav1.GetOptions{})
	g.Expect(apierrors.IsNotFound(err)).To(gomega.BeTrue(), "%v", err)
}
