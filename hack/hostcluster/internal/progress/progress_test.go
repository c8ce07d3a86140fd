// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// clock goes on by one second with every look at it.
func clock() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(time.Second)
		return now
	}
}

func TestPartsAreNumberedAndTimed(t *testing.T) {
	var out strings.Builder
	printer := New(&out, 12, clock())
	good := func(context.Context) error { return nil }
	bad := errors.New("bad")
	if err := printer.Part(t.Context(), "etcd", nil, good); err != nil {
		t.Errorf("Part returned %v for work that was done", err)
	}
	printer.Skip("kube", "built before")
	if err := printer.Part(t.Context(), "helm", nil, func(context.Context) error { return bad }); !errors.Is(err, bad) {
		t.Errorf("Part returned %v, want the error of the work", err)
	}
	printer.Total("all built")
	want := `[ 1/12] etcd ...
[ 1/12] etcd done in 1s
[ 2/12] kube: built before
[ 3/12] helm ...
[ 3/12] helm not done in 1s
all built in 5s
`
	if out.String() != want {
		t.Errorf("printed\n%swant\n%s", out.String(), want)
	}
}

func TestTimesAreRounded(t *testing.T) {
	for given, want := range map[time.Duration]string{
		1234 * time.Millisecond:                "1.2s",
		59*time.Second + 960*time.Millisecond:  "1m0s",
		61*time.Second + 400*time.Millisecond:  "1m1s",
		10*time.Minute + 1600*time.Millisecond: "10m2s",
	} {
		if got := round(given).String(); got != want {
			t.Errorf("round(%s) = %s, want %s", given, got, want)
		}
	}
}
