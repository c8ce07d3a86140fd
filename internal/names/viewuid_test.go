// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package names

import "testing"

func TestUIDsTurnBack(t *testing.T) {
	t.Parallel()
	for _, uid := range []string{"00000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff", "3f1c9a52-7d84-4e0b-9c61-d2a8b75e4f10"} {
		turned := ViewUID(uid)
		if turned == uid || !uuid.MatchString(turned) || turned[14] != '4' || turned[19] != uid[19] {
			t.Errorf("%s becomes %s", uid, turned)
		}
		if ViewUID(turned) != uid {
			t.Errorf("%s does not turn back", uid)
		}
	}
	for _, other := range []string{"", "x", "not-a-uid", "3f1c9a52-7d84-4e0b-9c61-d2a8b75e4f10-more"} {
		if ViewUID(other) != other {
			t.Errorf("%q is no UID, and was turned", other)
		}
	}
}
