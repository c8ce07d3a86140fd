// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

// Exec becomes the command, run inside all of the cluster's namespaces. It returns only if that is not possible. The command
// ends with the cluster.
func (c *Cluster) Exec(command []string) error {
	pid, err := c.first()
	if err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return fmt.Errorf("find nsenter: %w", err)
	}
	args := []string{
		nsenter, "--target=" + strconv.Itoa(pid), "--mount", "--uts", "--ipc", "--net", "--pid", "--wdns=" + c.folderInside(pid), "--",
	}
	environment := append(os.Environ(),
		"PATH="+node.Path()+":"+os.Getenv("PATH"),
		"KUBECONFIG="+node.State+"/pki/admin.kubeconfig",
		"CONTAINERD_ADDRESS="+node.ContainerdSocket,
		"CONTAINERD_NAMESPACE=k8s.io",
	)
	return fmt.Errorf("run %s: %w", command[0], unix.Exec(nsenter, append(args, command...), environment))
}

// folderInside is the working directory if the namespaces have it too, else the root.
func (c *Cluster) folderInside(pid int) string {
	working, err := os.Getwd()
	if err != nil {
		return "/"
	}
	if _, err := os.Stat(inside(pid, working)); err != nil {
		return "/"
	}
	return working
}
