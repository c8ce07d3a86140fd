// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/clone"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

func line(args ...string) string { return strings.Join(args, "\x00") + "\x00" }

func TestTheFirstProcessIsKnownByItsArguments(t *testing.T) {
	settings := Settings{Root: "/srv/one", Cache: "/cache/key"}
	for name, test := range map[string]struct {
		line string
		want bool
	}{
		"the first process of the clone":  {line(append([]string{"hostcluster"}, settings.args(InitCommand)...)...), true},
		"the supervisor of the clone":     {line(append([]string{"hostcluster"}, settings.args(SuperviseCommand)...)...), false},
		"the first process of another":    {line("hostcluster", InitCommand, "--clone=/srv/two"), false},
		"of one whose path begins alike":  {line("hostcluster", InitCommand, "--clone=/srv/one/deeper"), false},
		"a shell that speaks of it":       {line("sh", "-c", InitCommand+" --clone=/srv/one"), false},
		"a kernel thread without a line":  {"", false},
		"a command without further words": {line("hostcluster", InitCommand), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isFirst(test.line, "/srv/one"); got != test.want {
				t.Errorf("isFirst(%q) = %t, want %t", test.line, got, test.want)
			}
		})
	}
}

func TestNoProcessIsFoundForACloneThatNeverRan(t *testing.T) {
	pids, err := Find(t.TempDir())
	if err != nil || len(pids) != 0 {
		t.Errorf("Find = %v, %v, want none", pids, err)
	}
}

func TestReportTellsHowDaemonsAre(t *testing.T) {
	path := filepath.Join(t.TempDir(), "status.json")
	report := newReport(path, node.Daemons(clone.NamesOf("/srv/one"), node.Options{}))
	report.waiting(node.Kubelet, node.APIServerReady)
	report.started(node.Etcd, 7)
	report.started(node.Scheduler, 8)
	report.ended(node.Scheduler, errors.New("exit status 1"))
	report.ended(node.Scheduler, nil)

	statuses, err := ReadStatus(path)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]DaemonStatus{}
	for _, status := range statuses {
		byName[status.Name] = status
	}
	if got := byName[node.Etcd]; got.PID != 7 || got.Restarts != 0 {
		t.Errorf("etcd: %+v, want process 7 and no restart", got)
	}
	if got := byName[node.Kubelet]; got.PID != 0 || got.WaitsFor != string(node.APIServerReady) {
		t.Errorf("kubelet: %+v, want one that waits for the API server", got)
	}
	if got := byName[node.Scheduler]; got.PID != 0 || got.Restarts != 2 || got.LastEnd != "ended by itself" {
		t.Errorf("scheduler: %+v, want one that ended by itself at last", got)
	}
	if statuses[0].Name != node.Etcd {
		t.Errorf("first is %s, want the order of the start", statuses[0].Name)
	}
}

func TestStatusOfAClusterThatNeverRanIsEmpty(t *testing.T) {
	statuses, err := ReadStatus(filepath.Join(t.TempDir(), "none.json"))
	if err != nil || len(statuses) != 0 {
		t.Errorf("ReadStatus = %v, %v, want none", statuses, err)
	}
}
