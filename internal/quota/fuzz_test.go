// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// FuzzLedger lives through days of a tenant, one byte an act, and checks after each that no grant went beyond the quota, that nobody lost
// what they hold, and that a ledger has nothing left to do when it was just made.
func FuzzLedger(f *testing.F) {
	f.Add([]byte{0x10, 0x21, 0x32, 0x43, 0x54, 0x65, 0x76})
	f.Add([]byte("create, raise, lower, settle, delete, lose the ledger, and so on"))
	f.Fuzz(func(t *testing.T, acts []byte) {
		day := &day{hard: amounts("cloudspaces 5, cpu 10, memory 20Gi"), now: noon}
		for _, act := range acts {
			day.act(int(act>>4), int(act&0xf))
			day.check(t)
		}
	})
}

type day struct {
	hard   v1alpha1.QuotaAmounts
	ledger Ledger
	claims []Claim
	now    time.Time
	made   int
}

func (d *day) act(what, which int) {
	d.now = d.now.Add(time.Minute)
	if what == 0 || len(d.claims) == 0 {
		d.made++
		d.claims = append(d.claims, Claim{Name: fmt.Sprintf("c%d", which), UID: strconv.Itoa(d.made), Created: d.now, Asks: d.asks(which)})
		return
	}
	claim := &d.claims[which%len(d.claims)]
	reservation, _ := Reservation(d.ledger.Reservations, claim.UID)
	switch what {
	case 1, 2:
		if claim.Asks != nil {
			claim.Asks, claim.Settled = d.asks(which+what), false
		}
	case 3, 4, 5:
		// The host cluster takes up what is granted, no more than is asked for.
		if claim.Asks != nil && len(reservation.Amounts) > 0 {
			claim.Holds, claim.Settled = smaller(claim.Asks, reservation.Amounts), true
		}
	case 6:
		claim.Asks, claim.Settled = nil, false
	case 7:
		if claim.Asks == nil {
			d.claims = append(d.claims[:which%len(d.claims)], d.claims[which%len(d.claims)+1:]...)
		}
	case 8:
		d.hard = amounts(fmt.Sprintf("cloudspaces %d, cpu %d", which, which*2))
	case 9:
		d.now = d.now.Add(-time.Hour)
	case 10:
		d.ledger = Ledger{}
	}
}

func (d *day) asks(which int) v1alpha1.QuotaAmounts {
	return v1alpha1.QuotaAmounts{
		v1alpha1.QuotaCloudSpaces: resource.MustParse("1"),
		v1alpha1.QuotaCPU:         *resource.NewMilliQuantity(int64(which+1)*333, resource.DecimalSI),
		v1alpha1.QuotaMemory:      *resource.NewQuantity(int64(which+1)<<28+1, resource.BinarySI),
	}
}

func (d *day) check(t *testing.T) {
	t.Helper()
	before := d.ledger
	d.ledger = Next(before, d.hard, d.claims, d.now)
	sum, held := v1alpha1.QuotaAmounts{}, v1alpha1.QuotaAmounts{}
	for _, r := range d.ledger.Reservations {
		sum = Add(sum, r.Amounts)
		for name, amount := range r.Amounts {
			if amount.Sign() < 0 {
				t.Fatalf("%s has %s of %s", r.CloudSpace, amount.String(), name)
			}
		}
	}
	for _, claim := range d.claims {
		r, _ := Reservation(d.ledger.Reservations, claim.UID)
		if !Covers(r.Amounts, claim.Holds) && !d.nameTaken(claim) {
			t.Fatalf("%s holds %s and has %s", claim.Name, Text(claim.Holds), Text(r.Amounts))
		}
		held = Add(held, claim.Holds)
	}
	if !cmp.Equal(Text(sum), Text(d.ledger.Reserved)) && len(d.ledger.Reservations) > 0 {
		t.Fatalf("the sum is %s and reserved %s", Text(sum), Text(d.ledger.Reserved))
	}
	// Beyond the quota is only what was so before, or is held already.
	if over := Over(d.hard, sum); len(lacking(over, larger(Over(d.hard, before.Reserved), Over(d.hard, held)))) > 0 {
		t.Fatalf("granted beyond the quota: %s; before %s, held %s", Text(over), Text(Over(d.hard, before.Reserved)), Text(held))
	}
	if again := Next(d.ledger, d.hard, d.claims, d.now); !cmp.Equal(told(d.ledger), told(again)) {
		t.Fatalf("a second look changes the ledger:\n%s", cmp.Diff(told(d.ledger), told(again)))
	}
}

func (d *day) nameTaken(claim Claim) bool { return d.ledger.nameTaken(claim) }
