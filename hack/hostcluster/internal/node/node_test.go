// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/clone"
)

var names = clone.NamesOf("/srv/one")

func TestDaemonsWaitForThoseBeforeThem(t *testing.T) {
	opens := map[Gate]string{
		EtcdServes: Etcd, ContainerdReady: Containerd, APIServerReady: APIServerDaemon, NodeRegistered: Kubelet,
	}
	var started []string
	for _, daemon := range Daemons(names, Options{}) {
		for _, gate := range daemon.After {
			opener, known := opens[gate]
			if !known || !slices.Contains(started, opener) {
				t.Errorf("%s waits until %q, which nothing before it opens", daemon.Name, gate)
			}
		}
		started = append(started, daemon.Name)
	}
}

func TestEtcdWritesDurablyOnlyWhenAsked(t *testing.T) {
	for _, test := range []struct{ fsync, want bool }{{false, true}, {true, false}} {
		args := Daemons(names, Options{Fsync: test.fsync})[0].Args
		if got := slices.Contains(args, "--unsafe-no-fsync"); got != test.want {
			t.Errorf("fsync %t: --unsafe-no-fsync is %t, want %t", test.fsync, got, test.want)
		}
	}
}

func TestDaemonsUseNoPathOfTheMachine(t *testing.T) {
	allowed := []string{Base + "/", "/run/"}
	for _, daemon := range Daemons(names, Options{}) {
		for _, arg := range daemon.Args {
			_, value, _ := strings.Cut(arg, "=")
			inside := slices.ContainsFunc(allowed, func(prefix string) bool { return strings.HasPrefix(value, prefix) })
			if strings.HasPrefix(value, "/") && !inside {
				t.Errorf("%s is given %s, which clones would share", daemon.Name, arg)
			}
		}
	}
}

// file returns one configuration file as a tree.
func file(t *testing.T, name string) map[string]any {
	t.Helper()
	files, err := Files(names)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.UnmarshalStrict(files[config(name)], &tree); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return tree
}

func TestKubeletConfiguration(t *testing.T) {
	tree := file(t, kubeletConfig)
	for key, want := range map[string]any{
		"cgroupRoot":    names.CgroupRoot,
		"failCgroupV1":  false,
		"cgroupDriver":  "cgroupfs",
		"maxPods":       float64(250),
		"clusterDomain": "cluster.local",
		// Images that are gone can never be pulled again.
		"imageGCHighThresholdPercent": float64(100),
	} {
		if tree[key] != want {
			t.Errorf("%s is %v, want %v", key, tree[key], want)
		}
	}
}

func TestProxyLeavesTheMachinesLimitsAlone(t *testing.T) {
	limits, ok := file(t, proxyConfig)["conntrack"].(map[string]any)
	if !ok || limits["maxPerCore"] != float64(0) || limits["min"] != float64(0) {
		t.Errorf("connection tracking limits are %v, want 0", limits)
	}
}

func TestNetworkConfiguration(t *testing.T) {
	files, err := Files(names)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Plugins []struct {
			Type   string `json:"type"`
			Sysctl map[string]string
			IPAM   struct {
				Ranges [][]struct{ Subnet string }
			}
		}
	}
	if err := json.Unmarshal(files[cniFolder+"/"+networkConfig], &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Plugins) != 3 || list.Plugins[0].Type != "bridge" || list.Plugins[0].IPAM.Ranges[0][0].Subnet != nodePodRange {
		t.Errorf("plugins are %+v", list.Plugins)
	}
	if off := list.Plugins[1]; off.Type != "tuning" || off.Sysctl["net.ipv6.conf.all.disable_ipv6"] != "1" {
		t.Errorf("pods have IPv6, which policies do not filter here: %+v", off)
	}
}

func TestContainerdConfiguration(t *testing.T) {
	files, err := Files(names)
	if err != nil {
		t.Fatal(err)
	}
	text := string(files[config(containerdConfig)])
	for _, want := range []string{
		`address = "` + ContainerdSocket + `"`, `sandbox = "` + PauseImage + `"`, `bin_dirs = ["` + pluginFolder + `"]`,
		"restrict_oom_score_adj = true", `root = "` + State + `/containerd"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("containerd's configuration lacks %s", want)
		}
	}
}

func TestAuthenticationIsTheShippedOneForTheClustersProvider(t *testing.T) {
	shipped, err := os.ReadFile("../../../../config/authn/authentication.yaml")
	if err != nil {
		t.Fatal(err)
	}
	contents, err := AuthenticationFor(shipped, []byte("the authority"))
	if err != nil {
		t.Fatal(err)
	}
	var want, got map[string]any
	if err := errors.Join(yaml.Unmarshal(shipped, &want), yaml.Unmarshal(contents, &got)); err != nil {
		t.Fatal(err)
	}
	of := func(config map[string]any) map[string]any {
		return config["jwt"].([]any)[0].(map[string]any)["issuer"].(map[string]any)
	}
	if of(got)["url"] != "https://10.96.0.20" || of(got)["certificateAuthority"] != "the authority" {
		t.Errorf("issuer is %v", of(got))
	}
	delete(of(got), "certificateAuthority")
	of(got)["url"] = of(want)["url"]
	if !reflect.DeepEqual(got, want) {
		t.Errorf("more than the issuer differs:\n%v\n%v", got, want)
	}
}

func TestAuthenticationWithoutAProviderIsRefused(t *testing.T) {
	for _, shipped := range []string{"", "jwt: []", "jwt: [{}]", "jwt: {}", "{"} {
		if contents, err := AuthenticationFor([]byte(shipped), nil); err == nil {
			t.Errorf("%q gives %s", shipped, contents)
		}
	}
}
