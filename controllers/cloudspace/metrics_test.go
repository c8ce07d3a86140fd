// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

func TestWhatTheMetricsTellOfCloudSpaces(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	until := metav1.NewTime(noon)
	active := testCloudSpace("active", func(o *v1alpha1.CloudSpace) {
		o.Status.Phase, o.Status.Kubeconfig.Expires = v1alpha1.CloudSpaceActive, &until
		o.Status.Conditions = []metav1.Condition{{Type: "UpToDate", Status: metav1.ConditionTrue, Reason: "Succeeded"}}
	})
	waiting := testCloudSpace("waiting", func(o *v1alpha1.CloudSpace) {
		o.Status.Phase = v1alpha1.CloudSpaceActive
		o.Status.Conditions = []metav1.Condition{{Type: "UpToDate", Status: metav1.ConditionFalse, Reason: "RolloutStopped"}}
	})
	unseen := testCloudSpace("unseen")
	client := fake.NewClientBuilder().WithScheme(scheme).WithObjects(active, waiting, unseen).Build()
	want := `
# HELP kubeopera_cloudspace_kubeconfig_expiry_timestamp_seconds End of the validity of a CloudSpace's kubeconfig, in seconds since 1970.
# TYPE kubeopera_cloudspace_kubeconfig_expiry_timestamp_seconds gauge
kubeopera_cloudspace_kubeconfig_expiry_timestamp_seconds{cloudspace="active",tenant="alice-default"} 1.8935856e+09
# HELP kubeopera_cloudspace_outdated 1 for a CloudSpace whose control plane is not yet, or cannot be, what was asked for last, with the reason.
# TYPE kubeopera_cloudspace_outdated gauge
kubeopera_cloudspace_outdated{cloudspace="waiting",reason="RolloutStopped",tenant="alice-default"} 1
# HELP kubeopera_cloudspace_phase 1 for the phase that a CloudSpace is in.
# TYPE kubeopera_cloudspace_phase gauge
kubeopera_cloudspace_phase{cloudspace="active",phase="Active",tenant="alice-default"} 1
kubeopera_cloudspace_phase{cloudspace="waiting",phase="Active",tenant="alice-default"} 1
`
	if err := testutil.CollectAndCompare(Collector{Reader: client}, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
