// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// refusedEtcd finds out why a StatefulSet makes no pods. Unlike a Deployment it says so only in events.
func (r *Reconciler) refusedEtcd(ctx context.Context, s *scope) (*diagnosis, error) {
	etcd := s.observed.etcd
	if etcd == nil || etcd.Status.Replicas >= replicas(etcd.Spec.Replicas) {
		return nil, nil
	}
	events, err := r.eventsOn(ctx, s, "StatefulSet")
	if err != nil {
		return nil, err
	}
	return refusedByEvents(events, s.names.EtcdStatefulSet()), nil
}

// refusedByEvents reads the newest event that tells of a pod, or of a volume, that may not be made.
func refusedByEvents(events []corev1.Event, set string) *diagnosis {
	newest := newestOf(events, func(e *corev1.Event) bool { return e.InvolvedObject.Name == set && e.Reason == "FailedCreate" })
	switch {
	case newest == nil:
		return nil
	case strings.Contains(newest.Message, "persistentvolumeclaims"):
		return &diagnosis{reason: v1alpha1.ReasonVolumeFailed, message: newest.Message}
	default:
		return &diagnosis{reason: v1alpha1.ReasonPodsRefused, message: newest.Message}
	}
}

// unprovided finds out why a pod that gets no node for want of a volume has none.
func (r *Reconciler) unprovided(ctx context.Context, s *scope, found *diagnosis) (*diagnosis, error) {
	events, err := r.eventsOn(ctx, s, "PersistentVolumeClaim")
	if err != nil {
		return nil, err
	}
	if why := unprovidedByEvents(events, s.names.EtcdStatefulSet()); why != nil {
		return why, nil
	}
	return found, nil
}

// unprovidedByEvents reads the newest event on a volume of etcd that says why there is none. Volumes of the tenant have other names.
func unprovidedByEvents(events []corev1.Event, set string) *diagnosis {
	newest := newestOf(events, func(e *corev1.Event) bool {
		return strings.HasPrefix(e.InvolvedObject.Name, "data-"+set+"-") && (e.Reason == "ProvisioningFailed" || e.Reason == "FailedBinding")
	})
	if newest == nil {
		return nil
	}
	return &diagnosis{reason: v1alpha1.ReasonVolumeFailed, message: "volume " + newest.InvolvedObject.Name + ": " + newest.Message}
}

// missesVolume tells whether a pod gets no node because it has no volume.
func missesVolume(found *diagnosis) bool {
	return found != nil && found.reason == v1alpha1.ReasonUnschedulable && strings.Contains(strings.ToLower(found.message), "persistentvolumeclaim")
}

func newestOf(events []corev1.Event, matches func(*corev1.Event) bool) *corev1.Event {
	var newest *corev1.Event
	for i := range events {
		if e := &events[i]; matches(e) && (newest == nil || happened(newest).Before(happened(e))) {
			newest = e
		}
	}
	return newest
}

// happened is when an event happened last; those of the older and of the newer kind say so in different fields.
func happened(e *corev1.Event) *metav1.Time {
	switch {
	case e.Series != nil:
		return &metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return &e.LastTimestamp
	default:
		return &metav1.Time{Time: e.EventTime.Time}
	}
}

// maxEvents bounds what is read: a tenant makes events in the host namespace too.
const maxEvents = 500

// eventsOn reads live the events of the host namespace on one kind.
func (r *Reconciler) eventsOn(ctx context.Context, s *scope, kind string) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	err := r.Live.List(ctx, list, client.InNamespace(s.names.HostNamespace()), client.MatchingFields{"involvedObject.kind": kind}, client.Limit(maxEvents))
	return list.Items, err
}

// configGone tells whether the Secret with the control plane's configuration is not there. It is not watched: it matters only when
// a pod cannot start without it.
func (r *Reconciler) configGone(ctx context.Context, s *scope) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := r.Live.List(ctx, list, client.InNamespace(s.names.HostNamespace()), client.MatchingFields{metav1.ObjectNameField: s.names.ConfigSecret()})
	return err == nil && len(list.Items) == 0, err
}
