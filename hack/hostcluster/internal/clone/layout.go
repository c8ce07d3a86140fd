// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package clone

import (
	"fmt"
	"os"
	"path/filepath"
)

// Layout names the files of one clone's cluster as seen from the machine. All lie under the clone's .local folder.
type Layout struct {
	// Root is the clone's top folder.
	Root string
	// Local is the folder of everything that is not tracked.
	Local string
	// State holds what the cluster keeps: certificates, etcd, containers, volumes, charts. Its end is the cluster's end.
	State string
	// Logs holds one file for each daemon. It outlives the cluster, so that a failure can be read.
	Logs string
	// Lock is held by the one command that changes the cluster.
	Lock string
}

// LayoutOf returns the layout of the clone at root.
func LayoutOf(root string) Layout {
	local := filepath.Join(root, ".local")
	return Layout{
		Root:  root,
		Local: local,
		State: filepath.Join(local, "hostcluster"),
		Logs:  filepath.Join(local, "logs"),
		Lock:  filepath.Join(local, "hostcluster.lock"),
	}
}

// Kubeconfig is the administrator's kubeconfig for use from the machine.
func (l Layout) Kubeconfig() string { return filepath.Join(l.State, "kubeconfig") }

// Port is the file that remembers the loopback port over restarts.
func (l Layout) Port() string { return filepath.Join(l.State, "port") }

// Status is the file in which the supervisor says how its daemons are.
func (l Layout) Status() string { return filepath.Join(l.State, "status.json") }

// Imported is the file that remembers which image archives containerd holds.
func (l Layout) Imported() string { return filepath.Join(l.State, "imported.json") }

// Log is the log file of the daemon of that name.
func (l Layout) Log(daemon string) string { return filepath.Join(l.Logs, daemon+".log") }

// MakeLocal makes the .local folder and keeps git from seeing it.
func (l Layout) MakeLocal() error {
	if err := os.MkdirAll(l.Local, 0o755); err != nil {
		return fmt.Errorf("make folder for state: %w", err)
	}
	ignore := filepath.Join(l.Local, ".gitignore")
	if err := os.WriteFile(ignore, []byte("*\n"), 0o644); err != nil {
		return fmt.Errorf("keep state out of git: %w", err)
	}
	return nil
}

// Started is the file that remembers when the cluster was started last.
func (l Layout) Started() string { return filepath.Join(l.State, "started") }

// Version is the file that remembers which version of the programs the cluster was started with.
func (l Layout) Version() string { return filepath.Join(l.State, "version") }
