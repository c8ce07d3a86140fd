// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Messages as Kubernetes 1.36 writes them.
const (
	refusedPod    = `create Pod alice-default-etcd-0 in StatefulSet alice-default-etcd failed error: pods "alice-default-etcd-0" is forbidden: exceeded quota: cloudspace, requested: requests.cpu=50m, used: requests.cpu=2, limited: requests.cpu=2`
	refusedVolume = `create Pod alice-default-etcd-0 in StatefulSet alice-default-etcd failed error: failed to create PVC data-alice-default-etcd-0: persistentvolumeclaims "data-alice-default-etcd-0" is forbidden: exceeded quota: cloudspace, requested: requests.storage=2Gi, used: requests.storage=0, limited: requests.storage=1Gi`
	noClass       = `storageclass.storage.k8s.io "fast" not found`
	noDefault     = `no persistent volumes available for this claim and no storage class is set`
)

func warning(kind, name, reason, message string, age time.Duration) corev1.Event {
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "vcluster-alice-default", Name: name + "." + reason + age.String()},
		InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name},
		Reason:         reason, Message: message, LastTimestamp: metav1.NewTime(noon.Add(-age)),
	}
}

// ofNewKind is the same event as it is when it was recorded in the newer API.
func ofNewKind(e corev1.Event) corev1.Event {
	e.EventTime, e.LastTimestamp = metav1.NewMicroTime(e.LastTimestamp.Time), metav1.Time{}
	return e
}

func repeated(e corev1.Event, age time.Duration) corev1.Event {
	e.Series = &corev1.EventSeries{Count: 2, LastObservedTime: metav1.NewMicroTime(noon.Add(-age))}
	return e
}

func TestWhyEtcdHasNoPodsIsReadFromEvents(t *testing.T) {
	const set = "alice-default-etcd"
	pods := warning("StatefulSet", set, "FailedCreate", refusedPod, time.Minute)
	volume := warning("StatefulSet", set, "FailedCreate", refusedVolume, 2*time.Minute)
	tests := map[string]struct {
		events []corev1.Event
		want   *diagnosis
	}{
		"there are none":                    {},
		"its pods are refused":              {[]corev1.Event{pods}, &diagnosis{reason: "PodsRefused", message: refusedPod}},
		"its volumes are refused":           {[]corev1.Event{volume}, &diagnosis{reason: "VolumeFailed", message: refusedVolume}},
		"the newest counts":                 {[]corev1.Event{volume, pods}, &diagnosis{reason: "PodsRefused", message: refusedPod}},
		"the newest counts, in any order":   {[]corev1.Event{pods, volume}, &diagnosis{reason: "PodsRefused", message: refusedPod}},
		"the newer API":                     {[]corev1.Event{ofNewKind(pods), volume}, &diagnosis{reason: "PodsRefused", message: refusedPod}},
		"one that happened again":           {[]corev1.Event{pods, repeated(ofNewKind(volume), time.Second)}, &diagnosis{reason: "VolumeFailed", message: refusedVolume}},
		"another StatefulSet is none of it": {[]corev1.Event{warning("StatefulSet", "other", "FailedCreate", refusedPod, 0)}, nil},
		"what went well is nothing":         {[]corev1.Event{warning("StatefulSet", set, "SuccessfulCreate", "create Pod", 0)}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, refusedByEvents(tt.events, set), cmp.AllowUnexported(diagnosis{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhyEtcdHasNoVolumeIsReadFromEvents(t *testing.T) {
	const claim = "data-alice-default-etcd-0"
	tests := map[string]struct {
		events []corev1.Event
		want   *diagnosis
	}{
		"there are none":            {},
		"no such class":             {[]corev1.Event{warning("PersistentVolumeClaim", claim, "ProvisioningFailed", noClass, 0)}, &diagnosis{reason: "VolumeFailed", message: "volume " + claim + ": " + noClass}},
		"no default":                {[]corev1.Event{warning("PersistentVolumeClaim", claim, "FailedBinding", noDefault, 0)}, &diagnosis{reason: "VolumeFailed", message: "volume " + claim + ": " + noDefault}},
		"it only waits for the pod": {[]corev1.Event{warning("PersistentVolumeClaim", claim, "WaitForFirstConsumer", "waiting for first consumer", 0)}, nil},
		"a volume of the tenant":    {[]corev1.Event{warning("PersistentVolumeClaim", "data-x-default-x-alice-default", "ProvisioningFailed", noClass, 0)}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, unprovidedByEvents(tt.events, "alice-default-etcd"), cmp.AllowUnexported(diagnosis{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
