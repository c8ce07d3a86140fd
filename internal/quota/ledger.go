// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package quota is the arithmetic of TenantQuotas: what each CloudSpace of a tenant gets of what the tenant may use. It is pure and
// exact: amounts are quantities, never floats.
package quota

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// Patience bounds how long younger CloudSpaces can be granted what an older one waits for: once one has waited that long, what it waits
// for is kept for it.
const Patience = 10 * time.Minute

// Bounds of a ledger, as the schema of TenantQuota has them.
const (
	// maxReservations can be granted. The schema allows more, for what was there before there was a ledger.
	maxReservations = 500
	maxWaiting      = 20
)

// Claim is a CloudSpace as a ledger sees it.
type Claim struct {
	Name, UID string
	Created   time.Time
	// Generation is that of the spec which Asks is of.
	Generation int64
	// Asks are the amounts of its spec; nil when it is being deleted, or gone with something of it left.
	Asks v1alpha1.QuotaAmounts
	// Holds are the amounts that it has on the host cluster; nil when there is nothing of it.
	Holds v1alpha1.QuotaAmounts
	// Orphan tells that it is what is left of a CloudSpace of which no ledger knows any more. It is counted, and has no reservation: one of
	// the same name may have it.
	Orphan bool
	// Settled tells that the host cluster follows just the spec that Asks is of. Before, it may still be about to take up more.
	Settled bool
}

// Ledger is what is granted to whom, and who waits.
type Ledger struct {
	Reservations []v1alpha1.QuotaReservation
	// Waiting has the oldest first, at most 20, and those last that ask for more than there is in all; WaitingCount is of all.
	Waiting      []v1alpha1.QuotaWaiting
	WaitingCount int32
	// Reserved is the sum of all reservations.
	Reserved v1alpha1.QuotaAmounts
}

// Next is the ledger that follows from one before and from the CloudSpaces that there are, oldest first:
//
//   - What a CloudSpace without a reservation has on the host cluster is reserved for it, whatever the quota says: nothing is taken away, and
//     a ledger that was lost is made anew so. What is left of one that is gone is counted. What one has beyond its reservation is granted to nobody until it has given it back.
//   - A reservation shrinks to what is asked for when the host cluster follows that, and ends when there is no claim any more.
//   - What is asked for beyond that is granted as a whole, or waited for.
func Next(before Ledger, hard v1alpha1.QuotaAmounts, claims []Claim, now time.Time) Ledger {
	claims = slices.SortedFunc(slices.Values(claims), older)
	l := Ledger{Reservations: keep(before.Reservations, claims, now)}
	for _, r := range l.Reservations {
		l.Reserved = Add(l.Reserved, larger(r.Amounts, holdsOf(claims, r.UID)))
	}
	for _, claim := range claims {
		if claim.Orphan {
			l.Reserved = Add(l.Reserved, claim.Holds)
		}
	}
	l.serve(before, limits(hard), claims, now)
	slices.SortFunc(l.Reservations, func(a, b v1alpha1.QuotaReservation) int { return cmp.Compare(a.CloudSpace, b.CloudSpace) })
	l.Reserved = Add(l.Reserved, nil)
	return l
}

// Reduced names the reservations, by UID, of which after has less than before: what only the API server itself can confirm.
func Reduced(before, after []v1alpha1.QuotaReservation) map[string]bool {
	reduced := map[string]bool{}
	for _, old := range before {
		kept := find(after, old.UID)
		if kept < 0 || len(beyond(old.Amounts, after[kept].Amounts)) > 0 {
			reduced[old.UID] = true
		}
	}
	return reduced
}

// Reservation finds that of a CloudSpace.
func Reservation(reservations []v1alpha1.QuotaReservation, uid string) (v1alpha1.QuotaReservation, bool) {
	i := find(reservations, uid)
	if i < 0 {
		return v1alpha1.QuotaReservation{}, false
	}
	return reservations[i], true
}

func find(reservations []v1alpha1.QuotaReservation, uid string) int {
	return slices.IndexFunc(reservations, func(r v1alpha1.QuotaReservation) bool { return r.UID == uid })
}

// limits always bound the number of CloudSpaces: a ledger has room for no more.
func limits(hard v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts {
	limited := larger(hard, nil)
	if _, ok := hard[v1alpha1.QuotaCloudSpaces]; !ok {
		limited[v1alpha1.QuotaCloudSpaces] = *resource.NewQuantity(maxReservations, resource.DecimalSI)
	}
	return limited
}

func older(a, b Claim) int {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// keep carries over the reservations that somebody has a claim to, and adds those of which there was no word and something is there.
func keep(before []v1alpha1.QuotaReservation, claims []Claim, now time.Time) (kept []v1alpha1.QuotaReservation) {
	taken := map[string]bool{}
	for _, claim := range claims {
		i := find(before, claim.UID)
		if i >= 0 {
			reservation := before[i]
			reservation.Amounts = settle(reservation.Amounts, claim)
			if len(beyond(before[i].Amounts, reservation.Amounts)) > 0 || len(beyond(claim.Asks, claim.Holds)) > 0 {
				reservation.Generation = max(reservation.Generation, claim.Generation)
			}
			kept, taken[claim.Name] = append(kept, reservation), true
		}
	}
	for _, claim := range claims {
		if find(kept, claim.UID) < 0 && claim.Holds != nil && !claim.Orphan && !taken[claim.Name] {
			kept, taken[claim.Name] = append(kept, v1alpha1.QuotaReservation{
				CloudSpace: claim.Name, UID: claim.UID, Generation: claim.Generation, Since: metav1.NewTime(now), Amounts: claim.Holds,
			}), true
		}
	}
	return kept
}

// settle gives back what is not asked for any more, when it is not, and cannot come to be, in use. What is in use beyond a reservation does
// not become one: the CloudSpace gives it back.
func settle(reserved v1alpha1.QuotaAmounts, claim Claim) v1alpha1.QuotaAmounts {
	if !claim.Settled || claim.Asks == nil {
		return reserved
	}
	return smaller(reserved, larger(claim.Asks, claim.Holds))
}

func holdsOf(claims []Claim, uid string) v1alpha1.QuotaAmounts {
	i := slices.IndexFunc(claims, func(c Claim) bool { return c.UID == uid })
	if i < 0 {
		return nil
	}
	return claims[i].Holds
}

// serve grants what is asked for beyond what is reserved, oldest first. What is missing is told when all are served.
func (l *Ledger) serve(before Ledger, hard v1alpha1.QuotaAmounts, claims []Claim, now time.Time) {
	kept, waiters := v1alpha1.QuotaAmounts{}, []waiter{}
	for _, claim := range claims {
		reservation, reserved := Reservation(l.Reservations, claim.UID)
		w := waiter{claim: claim, needed: beyond(claim.Asks, reservation.Amounts), kept: kept}
		if len(w.needed) == 0 {
			continue
		}
		if len(w.missing(hard, l.Reserved)) == 0 && (reserved || !l.nameTaken(claim)) {
			l.grant(claim, now)
			continue
		}
		w.since = since(before, claim, now)
		waiters = append(waiters, w)
		if now.Sub(w.since) >= Patience && len(lacking(claim.Asks, hard)) == 0 {
			kept = Add(kept, w.needed)
		}
	}
	// Those that can never be served must not keep others off the list.
	slices.SortStableFunc(waiters, func(a, b waiter) int {
		return cmp.Compare(len(lacking(a.claim.Asks, hard)), len(lacking(b.claim.Asks, hard)))
	})
	for _, w := range waiters[:min(len(waiters), maxWaiting)] {
		l.Waiting = append(l.Waiting, v1alpha1.QuotaWaiting{
			CloudSpace: w.claim.Name, UID: w.claim.UID, Missing: w.missing(hard, l.Reserved), Asked: w.claim.Asks, Since: metav1.NewTime(w.since),
		})
	}
	l.WaitingCount = int32(len(waiters)) //nolint:gosec // there are a few hundred CloudSpaces at most.
}

// waiter is a CloudSpace that asks for more than is reserved for it.
type waiter struct {
	claim Claim
	// needed is what it asks for beyond what is reserved for it; kept is what is kept for older ones.
	needed, kept v1alpha1.QuotaAmounts
	since        time.Time
}

func (w waiter) missing(hard, reserved v1alpha1.QuotaAmounts) v1alpha1.QuotaAmounts {
	return lacking(w.needed, less(less(hard, reserved), w.kept))
}

// since tells how long a CloudSpace waits already for what it asks, or for more than that. A time in the future is of a clock that was ahead.
func since(before Ledger, claim Claim, now time.Time) time.Time {
	for _, w := range before.Waiting {
		if w.UID == claim.UID && Covers(w.Asked, claim.Asks) && w.Since.Time.Before(now) {
			return w.Since.Time
		}
	}
	return now
}

// nameTaken tells whether something is left of an earlier CloudSpace of the same name.
func (l *Ledger) nameTaken(claim Claim) bool {
	return slices.ContainsFunc(l.Reservations, func(r v1alpha1.QuotaReservation) bool { return r.CloudSpace == claim.Name && r.UID != claim.UID })
}

func (l *Ledger) grant(claim Claim, now time.Time) {
	i := find(l.Reservations, claim.UID)
	if i < 0 {
		i = len(l.Reservations)
		l.Reservations = append(l.Reservations, v1alpha1.QuotaReservation{CloudSpace: claim.Name, UID: claim.UID, Since: metav1.NewTime(now)})
	}
	reservation := &l.Reservations[i]
	l.Reserved = Add(l.Reserved, beyond(claim.Asks, reservation.Amounts))
	reservation.Amounts = larger(reservation.Amounts, claim.Asks)
	reservation.Generation = max(reservation.Generation, claim.Generation)
}
