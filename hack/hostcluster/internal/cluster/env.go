// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

// Environment prints what a shell evaluates to use the cluster. It works before the cluster runs too; only the registry's
// address on the machine is not known then.
func (c *Cluster) Environment() {
	address, err := c.address()
	if err != nil {
		address = ""
	}
	programs := c.programs()
	for _, variable := range [][2]string{
		{"KUBECONFIG", c.layout.Kubeconfig()},
		{"PATH", prepend(programs, os.Getenv("PATH"))},
		{"KUBEBUILDER_ASSETS", programs},
		{"HOSTCLUSTER_REGISTRY", node.RegistryName},
		{"HOSTCLUSTER_REGISTRY_LOCAL", address},
		{"HOSTCLUSTER_CACHE", filepath.Dir(programs)},
	} {
		fmt.Fprintf(c.out, "export %s=%s\n", variable[0], quote(variable[1]))
	}
}

// prepend puts folder at the front of a search path, once.
func prepend(folder, path string) string {
	kept := []string{folder}
	for other := range strings.SplitSeq(path, ":") {
		if other != folder && other != "" {
			kept = append(kept, other)
		}
	}
	return strings.Join(kept, ":")
}

// quote makes one word of text for any POSIX shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
