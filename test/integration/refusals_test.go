// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refusal is an answer of the API server that says why it did nothing.
func refusal(why *apierrors.StatusError) (*http.Response, error) {
	status := why.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	answer := &http.Response{
		StatusCode: int(status.Code), Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
	if details := status.Details; details != nil && details.RetryAfterSeconds > 0 {
		answer.Header.Set("Retry-After", "1")
	}
	return answer, nil
}

func (c call) writes() bool {
	return c.verb == "create" || c.verb == "update" || c.verb == "patch" || c.verb == "delete"
}

// tally counts calls, without the id of the tenant.
func tally(all []moment) map[call]int {
	counts := map[call]int{}
	for _, m := range all {
		counts[m.call] = max(counts[m.call], m.nth)
	}
	return counts
}

// Somebody else wrote first, each time that something is written for the first time. The operator looks again and writes once more.
func TestAConflictOnEveryFirstWriteChangesNothing(t *testing.T) {
	t.Parallel()
	const id = ofFaults + "conflicts"
	var mu sync.Mutex
	refused := map[call]bool{}
	p := startProcess(t, &process{id: id, intercept: func(made call, send func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		first := made.writes() && !refused[made]
		refused[made] = true
		mu.Unlock()
		if first {
			return refusal(apierrors.NewConflict(schema.GroupResource{Resource: made.resource}, made.name, errDead))
		}
		return send()
	}})
	inventory, half := upAndDown(t, p)
	sameAsUndisturbed(t, inventory)
	all, want := p.calls.since(0), undisturbed(t)
	got, usual := tally(moments(id, all[:half])), tally(want.up)
	for c, n := range tally(moments(id, all[half:])) {
		got[c] += n
	}
	for c, n := range tally(want.down) {
		usual[c] += n
	}
	for c, n := range got {
		// How often a status is written depends on what is waited for meanwhile, and what is read on how often it is looked at.
		if c.writes() && !strings.HasSuffix(c.resource, "/status") && n != usual[c]+1 {
			t.Errorf("%v was made %d times, want %d and one that was refused", c, n, usual[c])
		}
	}
}

// storm refuses requests for a time.
type storm struct {
	// hits tells whether a request begins it; all of those that hits lets through are refused while it lasts.
	hits  func(call) bool
	lasts time.Duration
	why   *apierrors.StatusError

	mu      sync.Mutex
	ends    time.Time
	refused map[call][]time.Time
}

func (s *storm) intercept(made call, send func() (*http.Response, error)) (*http.Response, error) {
	if s.rages(made, time.Now()) {
		return refusal(s.why)
	}
	return send()
}

func (s *storm) rages(made call, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hits(made) {
		return false
	}
	if s.ends.IsZero() {
		s.ends = now.Add(s.lasts)
	}
	if now.After(s.ends) {
		return false
	}
	s.refused[made] = append(s.refused[made], now)
	return true
}

// An API server that has too much to do, or is not there, is asked less and less often, and everything comes right afterwards.
func TestAStormOfRefusalsIsWaitedOut(t *testing.T) {
	t.Parallel()
	const lasts = 4 * time.Second
	every := func(call) bool { return true }
	only := func(row string) func(call) bool { return func(c call) bool { return c.verb+" "+c.resource == row } }
	tests := []struct {
		id   string
		why  *apierrors.StatusError
		hits func(call) bool
	}{
		{"all-busy", apierrors.NewTooManyRequests("try again", 1), every},
		{"all-away", apierrors.NewServiceUnavailable("no"), every},
		{"releases-busy", apierrors.NewTooManyRequests("try again", 1), only("create helmreleases")},
		{"releases-away", apierrors.NewServiceUnavailable("no"), only("create helmreleases")},
		{"statuses-away", apierrors.NewServiceUnavailable("no"), only("patch cloudspaces/status")},
		{"deletes-away", apierrors.NewServiceUnavailable("no"), only("delete helmreleases")},
		{"reads-away", apierrors.NewServiceUnavailable("no"), only("get namespaces")},
	}
	for _, tt := range tests {
		t.Run(tt.id, func(t *testing.T) {
			t.Parallel()
			slow := *patientPlatform()
			slow.Backoff.Base.Duration, slow.Backoff.Max.Duration = 50*time.Millisecond, time.Second
			s := &storm{hits: tt.hits, lasts: lasts, why: tt.why, refused: map[call][]time.Time{}}
			inventory, _ := upAndDown(t, startProcess(t, &process{id: ofFaults + tt.id, platform: &slow, intercept: s.intercept}))
			sameAsUndisturbed(t, inventory)
			if len(s.refused) == 0 {
				t.Fatal("there was no storm")
			}
			for c, times := range s.refused {
				// The waits double from 50 ms to a second, a tenth more or less: at most 5 times until then, and 4 in four seconds.
				if len(times) > 11 {
					t.Errorf("%v was tried %d times in %s", c, len(times), lasts)
				}
				for i := 1; i < len(times); i++ {
					if waited := times[i].Sub(times[i-1]); i > 6 && waited < 900*time.Millisecond {
						t.Errorf("%v: only %s between tries %d and %d", c, waited, i, i+1)
					}
				}
			}
		})
	}
}
