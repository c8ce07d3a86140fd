// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"regexp"
	"strings"
)

// mask is what the digits of a UID are turned over with. It has no meaning, and must never change: clients remember UIDs. The digits for
// version and variant are zero, so that what comes out is a UUID again.
const mask = "5a1e7c93-b2d8-04f6-02e9-1c84d7a63f5b"

var uuid = regexp.MustCompile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

// ViewUID turns the UID of a stored object into that of the view's, and back. They differ because the garbage collector takes two objects
// with one UID for the same; that it goes back without anything to look up keeps preconditions exact.
func ViewUID(uid string) string {
	if !uuid.MatchString(uid) || len(uid) != len(mask) {
		return uid
	}
	turned := []byte(uid)
	for i := range turned {
		if turned[i] != '-' {
			turned[i] = digits[digit(turned[i])^digit(mask[i])]
		}
	}
	return string(turned)
}

// ViewUIDs turns each UID in a text.
func ViewUIDs(text string) string { return uuid.ReplaceAllStringFunc(text, ViewUID) }

const digits = "0123456789abcdef"

func digit(c byte) int { return strings.IndexByte(digits, c) }
