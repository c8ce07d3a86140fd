// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package tenantquota

import (
	"context"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/apply"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/quota"
)

// clocksDiffer bounds how far the operator's clock and the API server's are taken to be apart.
const clocksDiffer = 5 * time.Minute

// claims are those of a tenant's CloudSpaces, and of what is left of CloudSpaces that are gone. Those whose UID is in confirm are read from
// the API server, the others from the caches.
func (r *Reconciler) claims(ctx context.Context, object *v1alpha1.TenantQuota, confirm map[string]bool) ([]quota.Claim, error) {
	claims, seen, err := r.claimsOfCloudSpaces(ctx, object.Name, confirm)
	if err != nil {
		return nil, err
	}
	orphans, err := r.orphans(ctx, object.Name)
	if err != nil {
		return nil, err
	}
	for i, reservation := range slices.Concat(object.Status.Reservations, orphans) {
		if seen.Has(reservation.UID) {
			continue
		}
		seen.Insert(reservation.UID)
		reader, unknown := client.Reader(r.Client), i >= len(object.Status.Reservations)
		// What the ledger does not know is not counted on the word of a cache either.
		if confirm[reservation.UID] || confirm != nil && unknown {
			reader = r.Live
		}
		claim, err := claimTo(ctx, reader, object.Name, reservation)
		if err != nil {
			return nil, err
		}
		if claim != nil {
			claim.Orphan = unknown && claim.Asks == nil
			claims = append(claims, *claim)
		}
	}
	return claims, nil
}

// claimsOfCloudSpaces are those that the caches can tell of, with their UIDs.
func (r *Reconciler) claimsOfCloudSpaces(ctx context.Context, tenantID string, confirm map[string]bool) (claims []quota.Claim, seen sets.Set[string], err error) {
	list, seen := &v1alpha1.CloudSpaceList{}, sets.New[string]()
	if err := r.Client.List(ctx, list, client.InNamespace(names.TenantNamespace(tenantID)), client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, err
	}
	for i := range list.Items {
		uid := string(list.Items[i].UID)
		if confirm[uid] {
			continue
		}
		claim, err := claimOf(ctx, r.Client, tenantID, &list.Items[i])
		if err != nil {
			return nil, nil, err
		}
		claims = append(claims, claim)
		seen.Insert(uid)
	}
	return claims, seen, nil
}

// orphans are reservations for the host namespaces of a tenant, as a ledger would have them that had not been lost. Most are of CloudSpaces
// that there are.
func (r *Reconciler) orphans(ctx context.Context, tenantID string) (reservations []v1alpha1.QuotaReservation, err error) {
	list := &corev1.NamespaceList{}
	if err := r.Client.List(ctx, list, client.MatchingFields{hostNamespaces: tenantID}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range list.Items {
		labels := list.Items[i].Labels
		reservations = append(reservations, v1alpha1.QuotaReservation{CloudSpace: labels[v1alpha1.LabelCloudSpace], UID: labels[v1alpha1.LabelOwnerUID]})
	}
	return reservations, nil
}

// claimTo finds who has a claim to a reservation: its CloudSpace, or what is left of that; nil when nothing is.
func claimTo(ctx context.Context, reader client.Reader, tenantID string, reservation v1alpha1.QuotaReservation) (*quota.Claim, error) {
	var cloudSpace *v1alpha1.CloudSpace
	if err := apply.Read(ctx, reader, &cloudSpace, names.TenantNamespace(tenantID), reservation.CloudSpace); err != nil {
		return nil, err
	}
	if cloudSpace != nil && string(cloudSpace.UID) == reservation.UID {
		claim, err := claimOf(ctx, reader, tenantID, cloudSpace)
		return &claim, err
	}
	// What is left may have lost its labels. It is not from before the reservation, by clocks that may differ a little.
	holds, _, err := held(ctx, reader, tenantID, reservation.CloudSpace, func(object client.Object) bool {
		owner, labelled := object.GetLabels()[v1alpha1.LabelOwnerUID]
		return owner == reservation.UID || !labelled && object.GetCreationTimestamp().Add(clocksDiffer).After(reservation.Since.Time)
	})
	if err != nil || holds == nil {
		return nil, err
	}
	return &quota.Claim{Name: reservation.CloudSpace, UID: reservation.UID, Holds: holds}, nil
}

func claimOf(ctx context.Context, reader client.Reader, tenantID string, cloudSpace *v1alpha1.CloudSpace) (quota.Claim, error) {
	claim := quota.Claim{Name: cloudSpace.Name, UID: string(cloudSpace.UID), Created: cloudSpace.CreationTimestamp.Time, Generation: cloudSpace.Generation}
	holds, total, err := held(ctx, reader, tenantID, cloudSpace.Name, apply.Owner{UID: cloudSpace.UID}.Owns)
	if err != nil {
		return claim, err
	}
	claim.Holds = holds
	if cloudSpace.DeletionTimestamp.IsZero() {
		claim.Asks, claim.Settled = quota.Of(cloudSpace.Spec.Resources), settled(cloudSpace, total)
	}
	return claim, nil
}

// settled tells whether the host cluster follows the very spec that a CloudSpace has, or a later one, and Kubernetes enforces it.
func settled(cloudSpace *v1alpha1.CloudSpace, total *corev1.ResourceQuota) bool {
	if total == nil {
		return false
	}
	follows, err := strconv.ParseInt(total.Annotations[v1alpha1.AnnotationGeneration], 10, 64)
	return err == nil && follows >= cloudSpace.Generation && equality.Semantic.DeepEqual(total.Spec.Hard, total.Status.Hard)
}

// held is what there is of a CloudSpace on the host cluster, nil when nothing is, and the quota of its namespace if that is there.
func held(ctx context.Context, reader client.Reader, tenantID, name string, its func(client.Object) bool) (v1alpha1.QuotaAmounts, *corev1.ResourceQuota, error) {
	host, err := names.ForCloudSpace(tenantID, name)
	if err != nil {
		// Nothing can be made under such a name.
		return nil, nil, nil //nolint:nilerr // see above.
	}
	var namespace *corev1.Namespace
	if err := apply.Read(ctx, reader, &namespace, "", host.HostNamespace()); err != nil || namespace == nil || !its(namespace) {
		return nil, nil, err
	}
	var total *corev1.ResourceQuota
	if err := apply.Read(ctx, reader, &total, host.HostNamespace(), names.HostQuota); err != nil {
		return nil, nil, err
	}
	if total != nil && !its(total) {
		total = nil
	}
	return quota.Held(total), total, nil
}
