// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

const (
	// firstPause and longestPause bound the time between a daemon's end and its next start. It doubles with each end.
	firstPause   = 500 * time.Millisecond
	longestPause = 15 * time.Second
	// steady is how long a daemon must have run for its next end to count as the first again.
	steady = time.Minute
	// stopTimeout is how long one daemon may take to stop before it is killed.
	stopTimeout = 3 * time.Second
)

// runDaemons starts each daemon when its gates are open, starts it again when it ends, and when ctx ends stops all in the
// reverse order.
func runDaemons(ctx context.Context, daemons []node.Daemon, gates map[node.Gate]<-chan struct{}) error {
	report := newReport(filepath.Join(node.State, "status.json"), daemons)
	running := make([]*daemon, 0, len(daemons))
	for _, described := range daemons {
		d := &daemon{Daemon: described, report: report, stop: make(chan struct{}), ended: make(chan struct{})}
		running = append(running, d)
		go d.keep(ctx, gates)
	}
	<-ctx.Done()
	for _, d := range slices.Backward(running) {
		close(d.stop)
		<-d.ended
	}
	return nil
}

// daemon keeps one process running.
type daemon struct {
	node.Daemon
	report *report
	// stop is closed to end the daemon for good; ended is closed when it has.
	stop, ended chan struct{}
}

func (d *daemon) keep(ctx context.Context, gates map[node.Gate]<-chan struct{}) {
	defer close(d.ended)
	for _, gate := range d.After {
		d.report.waiting(d.Name, gate)
		select {
		case <-gates[gate]:
		case <-ctx.Done():
			return
		}
	}
	pause := firstPause
	for {
		begun := time.Now()
		err := d.run()
		if d.stopping() {
			return
		}
		slog.Warn("daemon ended, starting it again", "daemon", d.Name, "error", err, "ranFor", time.Since(begun).String())
		d.report.ended(d.Name, err)
		if time.Since(begun) > steady {
			pause = firstPause
		}
		select {
		case <-d.stop:
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

func (d *daemon) stopping() bool {
	select {
	case <-d.stop:
		return true
	default:
		return false
	}
}

// run runs the process once. It ends when the process ends, or soon after stop is closed.
func (d *daemon) run() error {
	log, err := openLog(filepath.Join(node.Logs, d.Name+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(node.Bin(d.Name), d.Args...)
	command.Env = append(os.Environ(), "PATH="+node.Path())
	command.Dir = "/"
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		return err
	}
	d.report.started(d.Name, command.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-d.stop:
	}
	// The process may have ended by itself just now; then there is nothing to stop.
	_ = command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-ended:
		return err
	case <-time.After(stopTimeout):
		_ = command.Process.Kill()
		return <-ended
	}
}
