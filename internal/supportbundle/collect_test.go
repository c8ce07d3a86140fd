// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// canary must be nowhere in a bundle, in no form. It looks like part of a key.
const canary = "c4n4ryABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

const pem = "-----BEGIN EC PRIVATE KEY-----\n" + canary + "\n" + canary + "==\n-----END EC PRIVATE KEY-----\n"

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// kubeconfig is one as people paste it, and as programs log it.
var kubeconfig = fmt.Sprintf("clusters:\n- cluster: {certificate-authority-data: %s, server: https://a}\nusers:\n- user:\n    client-key-data: %s\n    token: %s\n    password: \"%s with spaces\"\n",
	encoded(pem), encoded(pem), canary, canary)

// hostWithCanaries has a canary wherever we know that a secret could be.
func hostWithCanaries() *fakeHost {
	workload := `{apiVersion: v1, kind: Pod, metadata: {name: shop, namespace: vcluster-alice, annotations: {note: "` + canary + `"}},
  spec: {priorityClassName: cloudspace-workload, containers: [{name: shop, image: shop:1, args: ["--pin=` + canary + `"], command: ["` + canary + `"],
    env: [{name: PIN, value: "` + canary + `"}, {name: FROM, valueFrom: {secretKeyRef: {name: pins, key: pin}}}], lifecycle: {preStop: {exec: {command: ["` + canary + `"]}}}}]},
  status: {phase: Running, containerStatuses: [{name: shop, containerID: "c://1"}]}}`
	controlPlane := `{apiVersion: v1, kind: Pod, metadata: {name: alice-0, namespace: vcluster-alice},
  spec: {priorityClassName: cloudspace-control-plane, containers: [{name: syncer, image: syncer:1, args: [--name=alice], env: [{name: PIN, value: "` + canary + `"}]}]},
  status: {phase: Running, containerStatuses: [{name: syncer, containerID: "c://2", restartCount: 1}]}}`
	secret := `{apiVersion: v1, kind: Secret, type: Opaque, metadata: {name: vc-alice, namespace: vcluster-alice,
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "` + canary + `", note: "` + canary + `"}, labels: {a: b}},
  data: {config: ` + encoded(kubeconfig) + `}, stringData: {x: "` + canary + `"}}`
	operator := `{apiVersion: v1, kind: Pod, metadata: {name: tc, namespace: kubeopera-system}, status: {containerStatuses: [{name: tc, containerID: "c://3"}]}}`
	return &fakeHost{
		lists: map[string][]string{
			"/apis/tenancy.kubeopera.io/v1alpha1/tenants": {`{apiVersion: tenancy.kubeopera.io/v1alpha1, kind: Tenant, metadata: {name: alice,
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "` + canary + `"}}, spec: {displayName: Alice}}`},
			"/apis/tenancy.kubeopera.io/v1alpha1/cloudspaces": {`{apiVersion: tenancy.kubeopera.io/v1alpha1, kind: CloudSpace, metadata: {name: default, namespace: tenant-alice},
  status: {conditions: [{type: Ready, status: "False", reason: ReconcileError, message: "Get \"https://me:` + canary + `@alice\": refused"}]}}`},
			"/apis/helm.toolkit.fluxcd.io/v2/namespaces/kubeopera-system/helmreleases": {`{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: alice, namespace: kubeopera-system},
  spec: {values: {size: Small, database: {adminPassword: "` + canary + `", rootCred: "` + canary + `", users: [{apiKey: "` + canary + `"}]}}}}`},
			"/api/v1/namespaces/kubeopera-system/pods":       {operator},
			"/api/v1/namespaces/kubeopera-system/configmaps": {fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt}, data: {ca.crt: %q, config: %q}}", pem, kubeconfig)},
			"/api/v1/namespaces/vcluster-alice/pods":         {workload, controlPlane},
			"/api/v1/namespaces/vcluster-alice/secrets":      {secret},
			"/api/v1/namespaces/vcluster-alice/events":       {`{apiVersion: v1, kind: Event, metadata: {name: e}, message: "401 with Authorization: Bearer ` + canary + `"}`},
			"/apis/apps/v1/namespaces/vcluster-alice/deployments": {`{apiVersion: apps/v1, kind: Deployment, metadata: {name: alice},
  spec: {template: {metadata: {annotations: {note: "` + canary + `"}}, spec: {containers: [{name: a, env: [{name: PIN, value: "` + canary + `"}]}]}}}}`},
		},
		texts: map[string]string{
			"/api/v1/namespaces/kubeopera-system/pods/tc/log":    fmt.Sprintf("{\"msg\":\"read\",\"kubeconfig\":%q,\"auth\":\"x\"}\nI am fine\n{\"auths\":{\"r\":{\"auth\":%q}}}\n", kubeconfig, canary),
			"/api/v1/namespaces/vcluster-alice/pods/alice-0/log": "serving\n" + pem + "after\npassword=" + canary + " eyJhbGciOiJSUzI1NiJ9." + canary + "." + canary + "\n",
			"/api/v1/namespaces/vcluster-alice/pods/shop/log":    "the customer says " + canary,
		},
	}
}

func TestNoSecretIsInABundle(t *testing.T) {
	h := hostWithCanaries()
	h.fails = []string{"/nodes"}
	files, progress := collect(t, h, "")
	needles := []string{canary, encoded(canary)[:20], encoded(pem)[:60], "BEGIN EC"}
	for name, text := range files {
		for _, needle := range needles {
			if strings.Contains(text, needle) {
				t.Errorf("%s has a secret in it (%s):\n%s", name, needle, text)
			}
		}
	}
	if strings.Contains(progress, canary) {
		t.Errorf("a secret was told:\n%s", progress)
	}
}

func TestWhatHelpsIsInABundle(t *testing.T) {
	files, _ := collect(t, hostWithCanaries(), "")
	for name, wanted := range map[string][]string{
		"summary.txt":                                     {"tenant-controller v1", "v1.36.3"},
		"objects/tenants.yaml":                            {"displayName: Alice"},
		"objects/cloudspaces.yaml":                        {"reason: ReconcileError", "refused"},
		"objects/helmreleases.yaml":                       {"size: Small", "adminPassword: REDACTED"},
		"namespaces/vcluster-alice/secrets.yaml":          {"name: vc-alice", "config: ", "type: Opaque", "a: b"},
		"namespaces/vcluster-alice/pods.yaml":             {"image: shop:1", "- --name=alice", "name: PIN", "secretKeyRef"},
		"namespaces/vcluster-alice/events.yaml":           {"401 with Authorization: "},
		"logs/kubeopera-system/tc/tc.log":                 {"I am fine"},
		"logs/vcluster-alice/alice-0/syncer.log":          {"serving", "after"},
		"logs/vcluster-alice/alice-0/syncer.log.previous": {"serving"},
		"errors.txt": {""},
	} {
		text, ok := files[name]
		if !ok {
			t.Errorf("%s is not there", name)
		}
		for _, want := range wanted {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %q:\n%s", name, want, text)
			}
		}
	}
	for name := range files {
		if strings.Contains(name, "/shop/") {
			t.Errorf("%s is the customer's", name)
		}
	}
}

func TestABundleIsMadeOfWhatCanBeRead(t *testing.T) {
	h := hostWithCanaries()
	h.fails = []string{"/helmreleases", "/log", "/namespaces/kubeopera-system/secrets"}
	files, progress := collect(t, h, "")
	for _, want := range []string{"listing helmreleases", "logs/vcluster-alice/alice-0/syncer.log", "listing secrets", "broken on purpose"} {
		if !strings.Contains(files["errors.txt"], want) {
			t.Errorf("errors.txt does not have %q:\n%s", want, files["errors.txt"])
		}
	}
	if !strings.Contains(files["objects/tenants.yaml"], "Alice") || !strings.Contains(files["namespaces/vcluster-alice/pods.yaml"], "shop") {
		t.Error("what could be read is not there")
	}
	if !strings.Contains(progress, "in part, see errors.txt") {
		t.Errorf("that something is missing is not told:\n%s", progress)
	}
}

func TestABundleOfOneTenantAsksForNoOther(t *testing.T) {
	h := hostWithCanaries()
	h.lists["/apis/tenancy.kubeopera.io/v1alpha1/namespaces/tenant-alice/cloudspaces"] = h.lists["/apis/tenancy.kubeopera.io/v1alpha1/cloudspaces"]
	h.fails = []string{"/v1alpha1/cloudspaces"}
	files, _ := collect(t, h, "alice")
	if files["errors.txt"] != "" {
		t.Errorf("CloudSpaces of all tenants were asked for: %s", files["errors.txt"])
	}
	if !strings.Contains(files["namespaces/vcluster-alice/pods.yaml"], "shop") {
		t.Error("the tenant's host namespace is not there")
	}
}

func TestABundleIsBounded(t *testing.T) {
	var out bytes.Buffer
	a := newArchive(&out, time.Unix(0, 0))
	if err := a.add("long", bytes.Repeat([]byte("a"), maxFile+1)); err != nil {
		t.Fatal(err)
	}
	if a.size > maxFile+64 {
		t.Errorf("%d bytes of one file", a.size)
	}
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = a.add(strconv.Itoa(i), bytes.Repeat([]byte("a"), maxFile))
	}
	if !errors.Is(err, errFull) || a.size > maxTotal {
		t.Errorf("%d bytes in all: %v", a.size, err)
	}
	if err := errors.Join(a.add("small", nil), a.close()); err != nil {
		t.Error(err)
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	for _, text := range []string{
		"waiting for the quota of the host namespace to be enforced", "image: ghcr.io/loft-sh/vcluster-oss:0.36.1", "https://alice.vcluster-alice.svc:443",
		"secretName: mirror", "kubeconfigSecret: tenant-alice-default-kubeconfig", "sha256:0a0b0c0d0e0f0a0b0c0d0e0f0a0b0c0d0e0f0a0b0c0d0e0f0a0b0c0d0e0f0a0b",
		"uid: 0b5c4d0e-3f5f-4f6c-9d3c-1d5b8a7b0c0d", "basic authentication is off", "author: me@example.com",
	} {
		if got := redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
