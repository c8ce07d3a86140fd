// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package prereq

import (
	"slices"
	"strings"
)

// hasFileSystem reads the text of /proc/filesystems: a name on each line, behind "nodev" where it needs no device.
func hasFileSystem(text, name string) bool {
	for line := range strings.Lines(text) {
		if slices.Contains(strings.Fields(line), name) {
			return true
		}
	}
	return false
}
