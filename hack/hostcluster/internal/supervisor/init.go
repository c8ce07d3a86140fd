// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/clone"
)

// RunInit is the first process of the namespaces. It sets them up, runs the supervisor as its child, passes signals on to it,
// and collects every process whose parent has ended, as process 1 must. It returns when the supervisor ends.
func RunInit(settings Settings) error {
	layout, names := clone.LayoutOf(settings.Root), clone.NamesOf(settings.Root)
	if err := unix.Sethostname([]byte(names.Node)); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	if err := setUpMounts(layout, settings.Cache); err != nil {
		return err
	}
	if err := setUpNetwork(); err != nil {
		return err
	}
	raiseLimits()

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	child, err := startSupervisor(settings)
	if err != nil {
		return err
	}
	go func() {
		for received := range signals {
			if err := child.Signal(received); err != nil {
				slog.Warn("supervisor takes no signal", "error", err)
			}
		}
	}()
	return reapUntil(child.Pid)
}

func startSupervisor(settings Settings) (*os.Process, error) {
	command := exec.Command("/proc/self/exe", settings.args(SuperviseCommand)...)
	command.Args[0] = "hostcluster"
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.ExtraFiles = []*os.File{os.NewFile(listenerFD, "listener")}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	return command.Process, nil
}

// reapUntil collects ended processes until the one numbered pid is among them.
func reapUntil(pid int) error {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait for processes: %w", err)
		}
		if ended != pid {
			continue
		}
		if status.Exited() && status.ExitStatus() == 0 {
			return nil
		}
		return fmt.Errorf("supervisor ended: exit status %d, signal %d", status.ExitStatus(), status.Signal())
	}
}

// raiseLimits lets many pods run: each control plane watches its certificate files, and the usual limit is reached by a
// dozen. It is no error if the machine forbids it.
func raiseLimits() {
	const instances, path = 8192, "/proc/sys/fs/inotify/max_user_instances"
	var now int
	text, err := os.ReadFile(path)
	if err == nil {
		_, err = fmt.Sscan(string(text), &now)
	}
	if err == nil && now < instances {
		err = os.WriteFile(path, []byte(strconv.Itoa(instances)), 0o644)
	}
	if err != nil {
		slog.Warn("limit of file watches stays as it is", "error", err)
	}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		slog.Warn("limit of open files is unknown", "error", err)
		return
	}
	files.Cur = files.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		slog.Warn("limit of open files stays as it is", "error", err)
	}
}
