// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// noon is when the ledgers of these tests are looked at.
var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// amounts reads "cpu 2, memory 4Gi".
func amounts(text string) v1alpha1.QuotaAmounts {
	if text == "" {
		return nil
	}
	read := v1alpha1.QuotaAmounts{}
	for part := range strings.SplitSeq(text, ", ") {
		name, amount, _ := strings.Cut(part, " ")
		read[v1alpha1.QuotaResource(name)] = resource.MustParse(amount)
	}
	return read
}

// cloudSpace is a claim of one that was made so many minutes before noon.
func cloudSpace(name string, age int, asks string, alter ...func(*Claim)) Claim {
	claim := Claim{Name: name, UID: "uid-" + name, Created: noon.Add(-time.Duration(age) * time.Minute), Asks: amounts(asks)}
	for _, a := range alter {
		a(&claim)
	}
	return claim
}

func holds(text string) func(*Claim) { return func(c *Claim) { c.Holds = amounts(text) } }
func settledOn(text string) func(*Claim) {
	return func(c *Claim) { c.Holds, c.Settled = amounts(text), true }
}
func generation(n int64) func(*Claim) { return func(c *Claim) { c.Generation = n } }
func orphan(c *Claim)                 { c.Orphan = true }
func ofUID(uid string) func(*Claim)   { return func(c *Claim) { c.UID = uid } }

func reserved(name, text string) v1alpha1.QuotaReservation {
	return v1alpha1.QuotaReservation{CloudSpace: name, UID: "uid-" + name, Since: metav1.NewTime(noon.Add(-time.Hour)), Amounts: amounts(text)}
}

func waits(name string, minutes int, asked string) v1alpha1.QuotaWaiting {
	return v1alpha1.QuotaWaiting{CloudSpace: name, UID: "uid-" + name, Asked: amounts(asked), Since: metav1.NewTime(noon.Add(-time.Duration(minutes) * time.Minute))}
}

// told is a ledger in words.
func told(l Ledger) []string {
	var lines []string
	for _, r := range l.Reservations {
		lines = append(lines, fmt.Sprintf("%s has %s", r.CloudSpace, Text(r.Amounts)))
	}
	for _, w := range l.Waiting {
		lines = append(lines, fmt.Sprintf("%s waits since %s for %s", w.CloudSpace, w.Since.UTC().Format("15:04"), Text(w.Missing)))
	}
	return lines
}

func TestLedger(t *testing.T) {
	tests := map[string]struct {
		hard   string
		before Ledger
		claims []Claim
		want   []string
	}{
		"nobody asks": {hard: "cpu 4"},
		"what fits is granted": {
			hard: "cloudspaces 2, cpu 4, memory 8Gi", claims: []Claim{cloudSpace("a", 1, "cloudspaces 1, cpu 4, memory 8Gi")},
			want: []string{"a has cloudspaces 1, cpu 4, memory 8Gi"},
		},
		"what is not limited is granted, and reserved all the same": {
			hard: "cpu 4", claims: []Claim{cloudSpace("a", 1, "cpu 1, memory 1Pi")},
			want: []string{"a has cpu 1, memory 1Pi"},
		},
		"what does not fit waits, and says what is missing": {
			hard: "cpu 4, memory 8Gi", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 3, memory 1Gi")}},
			claims: []Claim{cloudSpace("a", 9, "cpu 3, memory 1Gi"), cloudSpace("b", 1, "cpu 2500m, memory 7Gi")},
			want:   []string{"a has cpu 3, memory 1Gi", "b waits since 12:00 for cpu 1500m"},
		},
		"the oldest is served first": {
			hard: "cpu 4", claims: []Claim{cloudSpace("young", 1, "cpu 3"), cloudSpace("old", 2, "cpu 3")},
			want: []string{"old has cpu 3", "young waits since 12:00 for cpu 2"},
		},
		"of the same age, the lesser UID is served first": {
			hard: "cpu 4", claims: []Claim{cloudSpace("b", 1, "cpu 3"), cloudSpace("a", 1, "cpu 3")},
			want: []string{"a has cpu 3", "b waits since 12:00 for cpu 2"},
		},
		"a small one passes a big one that has not waited long": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 1")}, Waiting: []v1alpha1.QuotaWaiting{waits("big", 9, "cpu 4")}},
			claims: []Claim{cloudSpace("a", 60, "cpu 1"), cloudSpace("big", 30, "cpu 4"), cloudSpace("small", 1, "cpu 1")},
			want:   []string{"a has cpu 1", "small has cpu 1", "big waits since 11:51 for cpu 2"},
		},
		"but not one that has waited as long as younger ones may pass it": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 1")}, Waiting: []v1alpha1.QuotaWaiting{waits("big", 10, "cpu 4")}},
			claims: []Claim{cloudSpace("a", 60, "cpu 1"), cloudSpace("big", 30, "cpu 4"), cloudSpace("small", 1, "cpu 1")},
			want:   []string{"a has cpu 1", "big waits since 11:50 for cpu 1", "small waits since 12:00 for cpu 1"},
		},
		"one that waits for what there will never be keeps nothing from others": {
			hard: "cpu 4", before: Ledger{Waiting: []v1alpha1.QuotaWaiting{waits("huge", 600, "cpu 5")}},
			claims: []Claim{cloudSpace("huge", 700, "cpu 5"), cloudSpace("small", 1, "cpu 1")},
			want:   []string{"small has cpu 1", "huge waits since 02:00 for cpu 2"},
		},
		"one that asks for more waits from then on": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 1")}, Waiting: []v1alpha1.QuotaWaiting{waits("big", 10, "cpu 3500m")}},
			claims: []Claim{cloudSpace("a", 60, "cpu 1"), cloudSpace("big", 30, "cpu 4"), cloudSpace("small", 1, "cpu 1")},
			want:   []string{"a has cpu 1", "small has cpu 1", "big waits since 12:00 for cpu 2"},
		},
		"one that asks for less goes on waiting": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 1")}, Waiting: []v1alpha1.QuotaWaiting{waits("big", 10, "cpu 4")}},
			claims: []Claim{cloudSpace("a", 60, "cpu 1"), cloudSpace("big", 30, "cpu 3500m"), cloudSpace("small", 1, "cpu 1")},
			want:   []string{"a has cpu 1", "big waits since 11:50 for cpu 500m", "small waits since 12:00 for cpu 1"},
		},
		"since when one waits, by a clock that was ahead, is not believed": {
			hard: "cpu 1", before: Ledger{Waiting: []v1alpha1.QuotaWaiting{waits("a", -600, "cpu 2")}}, claims: []Claim{cloudSpace("a", 1, "cpu 2")},
			want: []string{"a waits since 12:00 for cpu 1"},
		},
		"a reservation ends when nobody has a claim to it": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("gone", "cpu 4")}}, claims: []Claim{cloudSpace("a", 1, "cpu 4")},
			want: []string{"a has cpu 4"},
		},
		"one that is being deleted keeps what it has": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 3")}}, claims: []Claim{cloudSpace("a", 1, ""), cloudSpace("b", 0, "cpu 2")},
			want: []string{"a has cpu 3", "b waits since 12:00 for cpu 1"},
		},
		"one that is being deleted and has nothing gets nothing": {hard: "cpu 4", claims: []Claim{cloudSpace("a", 1, "")}},
		"more is granted as a whole": {
			hard: "cpu 4, memory 8Gi", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 1, memory 1Gi")}},
			claims: []Claim{cloudSpace("a", 1, "cpu 4, memory 8Gi", settledOn("cpu 1, memory 1Gi"))},
			want:   []string{"a has cpu 4, memory 8Gi"},
		},
		"or not at all": {
			hard: "cpu 4, memory 8Gi", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 1, memory 1Gi")}},
			claims: []Claim{cloudSpace("a", 1, "cpu 4, memory 9Gi", settledOn("cpu 1, memory 1Gi"))},
			want:   []string{"a has cpu 1, memory 1Gi", "a waits since 12:00 for memory 1Gi"},
		},
		"less is given back when the host cluster follows": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 4")}},
			claims: []Claim{cloudSpace("a", 2, "cpu 1", settledOn("cpu 1")), cloudSpace("b", 1, "cpu 3")},
			want:   []string{"a has cpu 1", "b has cpu 3"},
		},
		"not before, even when it holds less already": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 4")}},
			claims: []Claim{cloudSpace("a", 2, "cpu 1", holds("cpu 1")), cloudSpace("b", 1, "cpu 3")},
			want:   []string{"a has cpu 4", "b waits since 12:00 for cpu 3"},
		},
		"nor less than is in use": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 4")}},
			claims: []Claim{cloudSpace("a", 2, "cpu 1", settledOn("cpu 3"))},
			want:   []string{"a has cpu 3"},
		},
		"of one that asks for more of one and less of another, the less does not wait": {
			hard: "cpu 4, memory 8Gi", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 4, memory 4Gi")}},
			claims: []Claim{cloudSpace("a", 2, "cpu 1, memory 9Gi", settledOn("cpu 1, memory 4Gi"))},
			want:   []string{"a has cpu 1, memory 4Gi", "a waits since 12:00 for memory 1Gi"},
		},
		"a quota that was lowered takes nothing away, and grants nothing more of that": {
			hard: "cpu 2, memory 8Gi", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 4, memory 1Gi")}},
			claims: []Claim{cloudSpace("a", 9, "cpu 4, memory 2Gi"), cloudSpace("b", 1, "cpu 1, memory 1Gi")},
			want:   []string{"a has cpu 4, memory 2Gi", "b waits since 12:00 for cpu 1"},
		},
		"what is held beyond a reservation does not become one, and is not granted to others": {
			hard: "cpu 8", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 2")}},
			claims: []Claim{cloudSpace("a", 9, "cpu 2", holds("cpu 4")), cloudSpace("b", 1, "cpu 5")},
			want:   []string{"a has cpu 2", "b waits since 12:00 for cpu 1"},
		},
		"those that ask for more than there is in all come last of those that wait": {
			hard: "cpu 4", claims: []Claim{cloudSpace("huge", 9, "cpu 5"), cloudSpace("a", 8, "cpu 3"), cloudSpace("b", 7, "cpu 2")},
			want: []string{"a has cpu 3", "b waits since 12:00 for cpu 1", "huge waits since 12:00 for cpu 4"},
		},
		"a lost ledger is made anew from what is there, before anything else, even beyond the quota": {
			hard: "cpu 4", claims: []Claim{cloudSpace("old-waiter", 90, "cpu 1"), cloudSpace("a", 60, "cpu 3", holds("cpu 3")), cloudSpace("b", 50, "cpu 2", holds("cpu 2"))},
			want: []string{"a has cpu 3", "b has cpu 2", "old-waiter waits since 12:00 for cpu 1"},
		},
		"what is left of one that no ledger knows is granted to nobody": {
			hard: "cpu 4", claims: []Claim{cloudSpace("a", 1, "cpu 2"), cloudSpace("gone", 90, "", holds("cpu 3"), orphan)},
			want: []string{"a waits since 12:00 for cpu 1"},
		},
		"another one of its name does not wait for it": {
			hard: "cpu 8", claims: []Claim{cloudSpace("a", 1, "cpu 2"), cloudSpace("a", 90, "", holds("cpu 3"), ofUID("earlier"), orphan)},
			want: []string{"a has cpu 2"},
		},
		"with what they hold, not with what they ask for beyond": {
			hard: "cpu 4", claims: []Claim{cloudSpace("a", 60, "cpu 9", holds("cpu 3"))},
			want: []string{"a has cpu 3", "a waits since 12:00 for cpu 5"},
		},
		"what is left of one that is gone is reserved still": {
			hard: "cpu 4", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 3")}}, claims: []Claim{cloudSpace("a", 0, "", holds("cpu 3"))},
			want: []string{"a has cpu 3"},
		},
		"and a new one of the same name waits for it to go": {
			hard: "cpu 8", before: Ledger{Reservations: []v1alpha1.QuotaReservation{reserved("a", "cpu 3")}},
			claims: []Claim{cloudSpace("a", 9, "", holds("cpu 3")), cloudSpace("a", 1, "cpu 1", ofUID("uid-new"))},
			want:   []string{"a has cpu 3", "a waits since 12:00 for "},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Next(tt.before, amounts(tt.hard), tt.claims, noon)
			if diff := cmp.Diff(tt.want, told(got)); diff != "" {
				t.Errorf("ledger (-want +got):\n%s", diff)
			}
			if again := Next(got, amounts(tt.hard), tt.claims, noon.Add(time.Second)); !cmp.Equal(told(got), told(again)) {
				t.Errorf("a second look changes the ledger (-first +second):\n%s", cmp.Diff(told(got), told(again)))
			}
		})
	}
}

// More than is held can be taken only for a spec that was counted: one that is not may come from before something was given back.
func TestWhichSpecWasCounted(t *testing.T) {
	has := reserved("a", "cpu 4")
	has.Generation = 2
	tests := map[string]struct {
		claim Claim
		want  int64
	}{
		"all is held already":            {claim: cloudSpace("a", 1, "cpu 4", holds("cpu 4"), generation(3)), want: 2},
		"more is asked for than is held": {claim: cloudSpace("a", 1, "cpu 4", holds("cpu 2"), generation(3)), want: 3},
		"nothing is held yet":            {claim: cloudSpace("a", 1, "cpu 4", generation(3)), want: 3},
		"something is given back":        {claim: cloudSpace("a", 1, "cpu 1", settledOn("cpu 1"), generation(3)), want: 3},
		"more is granted":                {claim: cloudSpace("a", 1, "cpu 5", holds("cpu 4"), generation(3)), want: 3},
		"more is waited for":             {claim: cloudSpace("a", 1, "cpu 9", holds("cpu 4"), generation(3)), want: 3},
		"it is being deleted":            {claim: cloudSpace("a", 1, "", holds("cpu 2"), generation(3)), want: 2},
		"a view that is behind":          {claim: cloudSpace("a", 1, "cpu 4", holds("cpu 2"), generation(1)), want: 2},
		"more is held than was reserved": {claim: cloudSpace("a", 1, "cpu 4", holds("cpu 6"), generation(3)), want: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := Next(Ledger{Reservations: []v1alpha1.QuotaReservation{has}}, amounts("cpu 8"), []Claim{tt.claim}, noon)
			if got.Reservations[0].Generation != tt.want {
				t.Errorf("counted is generation %d, want %d", got.Reservations[0].Generation, tt.want)
			}
		})
	}
}

func TestALedgerIsBounded(t *testing.T) {
	var claims []Claim
	for i := range 600 {
		claims = append(claims, cloudSpace(fmt.Sprintf("c%03d", i), 700-i, "cloudspaces 1, cpu 1"))
	}
	got := Next(Ledger{}, nil, claims, noon)
	if len(got.Reservations) != 500 || len(got.Waiting) != 20 || got.WaitingCount != 100 {
		t.Errorf("got %d reservations, %d waiting of %d; want 500, 20 of 100", len(got.Reservations), len(got.Waiting), got.WaitingCount)
	}
	if got.Waiting[0].CloudSpace != "c500" {
		t.Errorf("the first that waits is %s, want c500", got.Waiting[0].CloudSpace)
	}
}

func TestWhatIsReducedIsNamed(t *testing.T) {
	before := []v1alpha1.QuotaReservation{reserved("same", "cpu 1"), reserved("more", "cpu 1"), reserved("less", "cpu 2, memory 1Gi"), reserved("gone", "cpu 1")}
	after := []v1alpha1.QuotaReservation{reserved("same", "cpu 1"), reserved("more", "cpu 2"), reserved("less", "cpu 2, memory 1Mi"), reserved("new", "cpu 1")}
	got := slices.Sorted(maps.Keys(Reduced(before, after)))
	if diff := cmp.Diff([]string{"uid-gone", "uid-less"}, got); diff != "" {
		t.Errorf("reduced (-want +got):\n%s", diff)
	}
}
