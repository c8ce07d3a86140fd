// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisor runs the daemons of one host cluster inside namespaces of its own. Its first process there is process 1:
// when that ends, however it ends, the kernel ends every daemon and pod, and with them every mount and the network.
package supervisor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/clone"
)

// Commands of the driver that run inside the namespaces. They are not for people.
const (
	InitCommand      = "namespace-init"
	SuperviseCommand = "namespace-supervise"
)

// listenerFD is the file descriptor that the loopback listener has in both processes.
const listenerFD = 3

// Settings are what a cluster is started with. They travel from process to process as flags.
type Settings struct {
	// Root is the clone's top folder, Cache the folder of binaries.
	Root, Cache string
	// Fsync makes etcd write durably.
	Fsync bool
}

func (s Settings) args(command string) []string {
	return []string{command, "--clone=" + s.Root, "--cache=" + s.Cache, "--etcd-fsync=" + strconv.FormatBool(s.Fsync)}
}

// Launch starts the cluster's first process, detached from this one, and hands it the loopback listener. It returns when the
// process runs; the daemons come up after that.
func Launch(layout clone.Layout, settings Settings, listener *net.TCPListener) error {
	socket, err := listener.File()
	if err != nil {
		return fmt.Errorf("hand over the listener: %w", err)
	}
	defer func() { _ = socket.Close() }()
	if err := os.MkdirAll(layout.Logs, 0o755); err != nil {
		return fmt.Errorf("make folder for logs: %w", err)
	}
	log, err := openLog(layout.Log("supervisor"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command := exec.Command("/proc/self/exe", settings.args(InitCommand)...)
	command.Args[0] = "hostcluster"
	command.Dir = "/"
	command.Stdout, command.Stderr = log, log
	command.ExtraFiles = []*os.File{socket}
	command.SysProcAttr = &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS |
			syscall.CLONE_NEWIPC,
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start the cluster's namespaces: %w", err)
	}
	return command.Process.Release()
}

// openLog starts a new log and keeps the one before it beside it.
func openLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".before"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("keep the log before: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return file, nil
}

// Find returns the processes, as the machine numbers them, that are the first of the cluster of the clone at root. There is
// one if the cluster runs and none if not; it needs no file that remembers them.
func Find(root string) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// A process that has ended in the meantime is none of ours.
		line, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err == nil && isFirst(string(line), root) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// isFirst reads a command line, in which a NUL ends each argument.
func isFirst(line, root string) bool {
	args := strings.Split(strings.TrimSuffix(line, "\x00"), "\x00")
	return len(args) > 2 && args[1] == InitCommand && args[2] == "--clone="+root
}
