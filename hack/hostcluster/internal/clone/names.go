// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

const (
	// firstPort and portCount bound the loopback ports that clones are given: below the range that Linux hands out for
	// outgoing connections (32768 up), above the ports of common services.
	firstPort = 20000
	portCount = 10000
)

// Names are the names by which one clone's cluster is known on the machine. Each derives from the clone's path alone, so
// that clusters of two clones share none.
type Names struct {
	// ID is eight hexadecimal digits.
	ID string
	// Node is the Kubernetes node's name and the host name inside the cluster's namespaces.
	Node string
	// CgroupRoot is the folder of all the cluster's pods in every cgroup hierarchy, with a leading slash.
	CgroupRoot string
	// Port is the loopback TCP port that is tried first. Another is taken if it is in use.
	Port int
}

// NamesOf derives the names of the clone at root, a real path.
func NamesOf(root string) Names {
	sum := sha256.Sum256([]byte(root))
	id := hex.EncodeToString(sum[:4])
	return Names{
		ID:         id,
		Node:       "hostcluster-" + id,
		CgroupRoot: "/hostcluster-" + id,
		Port:       firstPort + int(binary.BigEndian.Uint32(sum[4:8])%portCount),
	}
}
