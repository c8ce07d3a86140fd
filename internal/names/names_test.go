// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package names

import (
	"strings"
	"testing"
)

func TestForCloudSpace(t *testing.T) {
	tests := map[string]struct {
		tenant, name string
		want         CloudSpace
		wantErr      string
	}{
		"the default CloudSpace has the tenant id as its host name": {tenant: "alice-default", name: "default", want: CloudSpace{"alice-default"}},
		"any other has both parts":                                  {tenant: "alice-default", name: "staging", want: CloudSpace{"alice-default--staging"}},
		"the longest parts are allowed":                             {tenant: strings.Repeat("a", 24), name: strings.Repeat("b", 20), want: CloudSpace{strings.Repeat("a", 24) + "--" + strings.Repeat("b", 20)}},
		"one character alone is allowed":                            {tenant: "a", name: "b", want: CloudSpace{"a--b"}},
		"a longer tenant id is refused":                             {tenant: strings.Repeat("a", 25), name: "default", wantErr: "is not a tenant id"},
		"a longer name is refused":                                  {tenant: "a", name: strings.Repeat("b", 21), wantErr: "is not a CloudSpace name"},
		"two dashes in a tenant id are refused":                     {tenant: "a--b", name: "default", wantErr: "is not a tenant id"},
		"two dashes in a name are refused":                          {tenant: "a", name: "b--c", wantErr: "is not a CloudSpace name"},
		"a dash at the end of a tenant id is refused":               {tenant: "a-", name: "b", wantErr: "is not a tenant id"},
		"a dash at the start of a name is refused":                  {tenant: "a", name: "-b", wantErr: "is not a CloudSpace name"},
		"a digit at the start is refused":                           {tenant: "1a", name: "b", wantErr: "is not a tenant id"},
		"upper case is refused":                                     {tenant: "A", name: "b", wantErr: "is not a tenant id"},
		"nothing is refused":                                        {tenant: "", name: "", wantErr: "is not a tenant id"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ForCloudSpace(tt.tenant, tt.name)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("error %v, want one that says %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %v, %v, want %v", got, err, tt.want)
			}
		})
	}
}

func TestNamesOfTheManualHoldToTheLetter(t *testing.T) {
	c, err := ForCloudSpace("alice-default", "default")
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		TenantNamespace("alice-default"):        "tenant-alice-default",
		TenantKubeconfigSecret("alice-default"): "tenant-alice-default-kubeconfig",
		c.HostName():                            "alice-default",
		c.HostNamespace():                       "vcluster-alice-default",
		c.ControlPlaneRelease():                 "alice-default",
		c.FluxRelease():                         "alice-default-flux",
		c.AdvisorRelease():                      "alice-default-advisor",
		c.KubeconfigSecret():                    "cloudspace-alice-default-kubeconfig",
		c.SourceSecret():                        "vc-alice-default",
		c.ConfigSecret():                        "vc-config-alice-default",
		c.Endpoint():                            "https://alice-default.vcluster-alice-default.svc:443",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Kubernetes limits namespaces and labels to 63 characters and, by the label that it puts on pods, the name of a
// StatefulSet to 52; Helm limits a release name to 53.
func TestTheLongestNamesFitTheirLimits(t *testing.T) {
	c, err := ForCloudSpace(strings.Repeat("a", MaxTenantID), strings.Repeat("b", MaxCloudSpaceName))
	if err != nil {
		t.Fatal(err)
	}
	for name, limit := range map[string]int{
		c.HostName():           46,
		c.HostName() + "-etcd": 52,
		c.HostNamespace():      63,
		c.AdvisorRelease():     63,
		c.FluxRelease():        53,
	} {
		if len(name) > limit {
			t.Errorf("%s has %d characters, at most %d are allowed", name, len(name), limit)
		}
	}
}

func TestTenantID(t *testing.T) {
	tests := map[string]struct {
		want string
		ok   bool
	}{
		"tenant-alice-default":              {"alice-default", true},
		"tenant-a":                          {"a", true},
		"tenant-" + strings.Repeat("a", 24): {strings.Repeat("a", 24), true},
		"tenant-" + strings.Repeat("a", 25): {strings.Repeat("a", 25), false},
		"tenant-a--b":                       {"a--b", false},
		"tenant-":                           {"", false},
		"kube-system":                       {"kube-system", false},
		"vcluster-tenant-a":                 {"vcluster-tenant-a", false},
	}
	for namespace, tt := range tests {
		t.Run(namespace, func(t *testing.T) {
			got, ok := TenantID(namespace)
			if ok != tt.ok || (ok && got != tt.want) {
				t.Errorf("got %q, %v, want %q, %v", got, ok, tt.want, tt.ok)
			}
		})
	}
}

func FuzzHostNamesAreReversible(f *testing.F) {
	for _, seed := range [][2]string{{"alice-default", "default"}, {"a", "b"}, {"a-b", "c"}, {"a", "b-c"}, {"a--b", "c"}, {"default", "default"}, {"a", "default"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, tenant, name string) {
		c, err := ForCloudSpace(tenant, name)
		if err != nil {
			return
		}
		gotTenant, gotName, err := ParseHostName(c.HostName())
		if err != nil || gotTenant != tenant || gotName != name {
			t.Fatalf("%s/%s became %s and came back as %s/%s, %v", tenant, name, c.HostName(), gotTenant, gotName, err)
		}
	})
}

func FuzzHostNamesAreOneToOne(f *testing.F) {
	for _, seed := range []string{"alice-default", "alice-default--staging", "a--default", "a--b--c", "--", "a--", "--a", "default"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		tenant, name, err := ParseHostName(host)
		if err != nil {
			return
		}
		c, err := ForCloudSpace(tenant, name)
		if err != nil || c.HostName() != host {
			t.Fatalf("%s was read as %s/%s, which gives %s, %v", host, tenant, name, c.HostName(), err)
		}
	})
}
