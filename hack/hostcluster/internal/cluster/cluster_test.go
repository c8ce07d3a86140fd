// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/archive"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/supervisor"
)

func TestMountsUnderAFolder(t *testing.T) {
	table := []byte(`22 1 8:1 / / rw - ext4 /dev/sda rw
30 22 0:5 / /srv/one/.local/hostcluster rw - tmpfs x rw
31 30 0:6 / /srv/one/.local/hostcluster/with\040blank rw - tmpfs x rw
32 22 0:7 / /srv/one/.local/hostcluster-other rw - tmpfs x rw
33 22 0:8 / /work rw - tmpfs x rw
`)
	got := mountsUnder(table, "/srv/one/.local/hostcluster")
	want := []string{"/srv/one/.local/hostcluster/with blank", "/srv/one/.local/hostcluster"}
	if !slices.Equal(got, want) {
		t.Errorf("mounts are %q, want %q", got, want)
	}
}

func TestFolderIsPrependedOnce(t *testing.T) {
	for given, want := range map[string]string{
		"":                 "/cache/bin",
		"/usr/bin:/bin":    "/cache/bin:/usr/bin:/bin",
		"/a:/cache/bin:/b": "/cache/bin:/a:/b",
		"/cache/bin:/a":    "/cache/bin:/a",
		"/a::/b":           "/cache/bin:/a:/b",
	} {
		if got := prepend("/cache/bin", given); got != want {
			t.Errorf("prepend to %q = %q, want %q", given, got, want)
		}
	}
}

func TestQuotedTextIsOneWord(t *testing.T) {
	for given, want := range map[string]string{
		"/plain":     "'/plain'",
		"with blank": "'with blank'",
		"it's $HOME": `'it'\''s $HOME'`,
	} {
		if got := quote(given); got != want {
			t.Errorf("quote(%q) = %s, want %s", given, got, want)
		}
	}
}

const kubeconfig = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: one, user: u}}]
clusters: [{name: one, cluster: {server: "SERVER"}}]
users: [{name: u, user: {token: t}}]
`

func TestKubeconfigLeadsThroughTheForwarder(t *testing.T) {
	for _, server := range []string{
		"https://alice.vcluster-alice.svc:443", "https://alice.vcluster-alice.svc",
	} {
		data, err := throughForwarder([]byte(strings.Replace(kubeconfig, "SERVER", server, 1)), "127.0.0.1:20001")
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(data)
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != "https://127.0.0.1:20001" || config.ServerName != "alice.vcluster-alice.svc" || config.BearerToken != "t" {
			t.Errorf("%s: server %s, server name %s", server, config.Host, config.ServerName)
		}
	}
}

func TestKubeconfigWithoutAServerIsRefused(t *testing.T) {
	for _, server := range []string{"", "not a url", "/path"} {
		data := []byte(strings.Replace(kubeconfig, "SERVER", server, 1))
		if _, err := throughForwarder(data, "127.0.0.1:20001"); err == nil {
			t.Errorf("server %q was accepted", server)
		}
	}
}

func TestImageFilesMustHaveATarget(t *testing.T) {
	for _, pair := range []string{"source", "source:", ":/target", "source:relative"} {
		err := (&Cluster{}).LoadImage(t.Context(), archive.Image{Ref: "example.test/a/b:1"}, []string{pair})
		if err == nil || !strings.Contains(err.Error(), "SOURCE:TARGET") {
			t.Errorf("%q: error %v, want one that tells the form", pair, err)
		}
	}
}

func TestDaemonToRestartIsFoundByItsName(t *testing.T) {
	statuses := []supervisor.DaemonStatus{{Name: "etcd", PID: 7}, {Name: "kube-apiserver", PID: 8}}
	found, err := findDaemon(statuses, "kube-apiserver")
	if err != nil || found.PID != 8 {
		t.Errorf("findDaemon = %+v, %v, want process 8", found, err)
	}
	if _, err := findDaemon(statuses, "apiserver"); err == nil || !strings.Contains(err.Error(), "etcd, kube-apiserver") {
		t.Errorf("error %v, want one that names the daemons", err)
	}
}
