// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Whatever the status of the CloudSpace says, which may be of the past, its kubeconfig is known by its UID.
func TestACopyOfAKubeconfigOpensTheCloudSpaceItWasMadeFor(t *testing.T) {
	cloudSpace := func(uid types.UID) *v1alpha1.CloudSpace {
		return &v1alpha1.CloudSpace{ObjectMeta: metav1.ObjectMeta{UID: uid}}
	}
	going := cloudSpace("uid-1")
	going.DeletionTimestamp = &metav1.Time{Time: noon}
	tests := map[string]struct {
		opens      string
		cloudSpace *v1alpha1.CloudSpace
		want       bool
	}{
		"its own":                         {opens: "uid-1", cloudSpace: cloudSpace("uid-1"), want: true},
		"one that is being deleted":       {opens: "uid-1", cloudSpace: going},
		"one that is gone":                {opens: "uid-1"},
		"a new one of the same name":      {opens: "uid-1", cloudSpace: cloudSpace("uid-2")},
		"nobody knows whose the copy was": {cloudSpace: cloudSpace("uid-1")},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{annotationOpens: tt.opens}}}
			if got := opens(secret, tt.cloudSpace); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
