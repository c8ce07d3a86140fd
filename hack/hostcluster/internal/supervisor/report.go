// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

// DaemonStatus is how one daemon is.
type DaemonStatus struct {
	Name string `json:"name"`
	// PID is the process inside the cluster's namespaces, 0 while there is none.
	PID int `json:"pid,omitempty"`
	// Since is when it was started, or ended.
	Since time.Time `json:"since"`
	// Restarts counts how often it was started again.
	Restarts int `json:"restarts,omitempty"`
	// WaitsFor is the gate that is not open yet.
	WaitsFor string `json:"waitsFor,omitempty"`
	// LastEnd tells how it ended last.
	LastEnd string `json:"lastEnd,omitempty"`
}

// ReadStatus reads how the daemons are, in the order of their start. Without a file there are none.
func ReadStatus(path string) ([]DaemonStatus, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read how daemons are: %w", err)
	}
	var statuses []DaemonStatus
	if err := json.Unmarshal(data, &statuses); err != nil {
		return nil, fmt.Errorf("read how daemons are from %s: %w", path, err)
	}
	return statuses, nil
}

// report writes the file that ReadStatus reads, at each change.
type report struct {
	path     string
	mutex    sync.Mutex
	statuses []DaemonStatus
}

func newReport(path string, daemons []node.Daemon) *report {
	r := &report{path: path}
	for _, daemon := range daemons {
		r.statuses = append(r.statuses, DaemonStatus{Name: daemon.Name, Since: time.Now()})
	}
	return r
}

func (r *report) waiting(name string, gate node.Gate) {
	r.change(name, func(s *DaemonStatus) { s.WaitsFor = string(gate) })
}

func (r *report) started(name string, pid int) {
	r.change(name, func(s *DaemonStatus) { s.PID, s.WaitsFor = pid, "" })
}

func (r *report) ended(name string, err error) {
	r.change(name, func(s *DaemonStatus) {
		s.PID, s.LastEnd = 0, "ended by itself"
		if err != nil {
			s.LastEnd = err.Error()
		}
		s.Restarts++
	})
}

func (r *report) change(name string, set func(*DaemonStatus)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for i := range r.statuses {
		if r.statuses[i].Name == name {
			set(&r.statuses[i])
			r.statuses[i].Since = time.Now()
		}
	}
	if err := r.write(); err != nil {
		slog.Warn("how daemons are is not written down", "error", err)
	}
}

func (r *report) write() error {
	data, err := json.MarshalIndent(r.statuses, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.path+".partial", data, 0o644); err != nil {
		return err
	}
	return os.Rename(r.path+".partial", r.path)
}
