// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

// why says what each row of the table of calls is for. A call that is not in here needs a reason before it may be made.
var why = map[string]map[string]string{
	"up": {
		"patch tenants":             "the finalizer, before anything is made",
		"create namespaces":         "the tenant's namespace and the host namespace",
		"create rolebindings":       "one for each role of members, and the operator's own in the host namespace",
		"create cloudspaces":        "the default CloudSpace",
		"patch cloudspaces":         "the finalizer, before anything is made",
		"create limitranges":        "defaults for containers that say nothing",
		"create networkpolicies":    "all pods of the host namespace, its control plane, its workloads",
		"create resourcequotas":     "the caps of the host namespace: of all, of the control plane, of workloads; and of CloudSpace objects",
		"create tenantquotas":       "the platform's default, for a Tenant that has none",
		"get tenantquotas":          "the ledger as it stands, before it is written",
		"get tenants":               "whether it is there as the cache has it, in each pass that makes something for it",
		"get cloudspaces":           "whether it is there as the cache has it, in each pass that makes something for it",
		"patch tenantquotas/status": "an empty ledger, then what is granted",
		"create helmreleases":       "the control plane and Flux",
		"create secrets":            "the pull secret of the control plane, the kubeconfig that was rebuilt, and the tenant's copy",
		"patch cloudspaces/status":  "each new thing to wait for: quota, release, etcd, API server, kubeconfig, Flux' release, Flux; then Active",
		"patch tenants/status":      "each new thing that its CloudSpace waits for; then Ready",
	},
	"down": {
		"delete cloudspaces":        "the default CloudSpace",
		"list cloudspaces":          "whether really no CloudSpace is left",
		"delete helmreleases":       "Flux, then the control plane",
		"get helmreleases":          "whether really nothing is left: App Advisor, Flux, control plane",
		"delete secrets":            "the kubeconfig and the tenant's copy",
		"get secrets":               "whether really both are gone",
		"delete namespaces":         "the host namespace, then the tenant's",
		"get namespaces":            "whether really both are gone; the host namespace once more, before its reservation ends",
		"get cloudspaces":           "whether it is there as the cache has it, in each pass that removes something; whether it really is gone, before its reservation ends",
		"get tenants":               "whether it is there as the cache has it, in each pass that removes something",
		"get tenantquotas":          "the ledger as it stands, before it is written; whether really it is gone",
		"patch tenantquotas/status": "the end of the reservation",
		"delete tenantquotas":       "the platform's default",
		"patch cloudspaces/status":  "each new thing to wait for: Flux, control plane, kubeconfig, host namespace",
		"patch cloudspaces":         "the finalizer, when nothing is left",
		"patch tenants/status":      "each new thing to wait for",
		"patch tenants":             "the finalizer, when nothing is left",
	},
}

// What a Tenant with its default CloudSpace costs the host's API server. The stand-in goes from stage to stage only when the
// operator has told of the last one, as it is with real ones, which take seconds for each. The charts and repositories that all
// CloudSpaces share are made once and are not in here; nor are watches (two for each CloudSpace: its kubeconfig Secret and its pull secrets) and
// events.
func TestCallsOfATenant(t *testing.T) {
	const runs = 5
	reach(t, create(t, tenant("before-calls")), "Ready")
	var tables []string
	for run := range runs {
		// With patience: on a busy machine the operator of all lets go of what is deleted while a stage is waited for.
		p := startProcess(t, &process{id: fmt.Sprintf("%scalls-%d", ofFaults, run)})
		_, half := upAndDown(t, p)
		p.end(t)
		made := p.calls.since(0)
		tables = append(tables, callTable(t, p.id, made[:half], made[half:]))
	}
	for run, table := range tables {
		if diff := cmp.Diff(tables[0], table); diff != "" {
			t.Errorf("run %d cost something else than the first (-first +this):\n%s", run, diff)
		}
	}
	path := filepath.Join("testdata", "calls.golden.md")
	if *update {
		if err := os.WriteFile(path, []byte(tables[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), tables[0]); diff != "" {
		t.Errorf("%s differs (-want +got); if it should, run the test with -update:\n%s", path, diff)
	}
}

// goUp makes a Tenant and takes it to Ready, stage by stage.
func goUp(t *testing.T, id string) {
	t.Helper()
	host := "vcluster-" + id
	for _, name := range []string{"cloudspace." + host, id, id + "-etcd", id + "-flux"} {
		theStandIn.behave(name, behaviour{hang: true})
	}
	theStandIn.behave(host, behaviour{hang: true})
	flux.set("cloudspace-"+id, "helm-controller")
	object := create(t, tenant(id))
	for _, stage := range []struct {
		reason, words string
		then          func()
	}{
		{"WaitingForQuota", "quota", func() { theStandIn.behave("cloudspace."+host, behaviour{}) }},
		{"Installing", "installing the control plane", func() { theStandIn.behave(id, behaviour{}) }},
		{"Starting", "etcd", func() { theStandIn.behave(id+"-etcd", behaviour{}) }},
		{"Starting", "API server", func() { theStandIn.behave(host, behaviour{kubeconfig: "none"}) }},
		{"WaitingForKubeconfig", "kubeconfig", func() { theStandIn.behave(host, behaviour{}) }},
		{"Installing", "installing Flux", func() { theStandIn.behave(id+"-flux", behaviour{}) }},
		{"WaitingForFlux", "helm-controller", func() { flux.set("cloudspace-"+id, "") }},
	} {
		says(t, object, "Ready False "+stage.reason, stage.words)
		stage.then()
	}
	says(t, object, "Ready True Provisioned", "")
}

// goDown deletes the Tenant, stage by stage, and waits until it is gone.
func goDown(t *testing.T, id string) {
	t.Helper()
	host := "vcluster-" + id
	for _, name := range []string{id + "-flux", id, host, "tenant-" + id} {
		theStandIn.behave(name, behaviour{keep: true})
	}
	object, space := tenant(id), cloudSpace(id, "default")
	if err := api.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	says(t, object, "Ready False Deleting", "CloudSpace")
	for _, stage := range [][2]string{{"release " + id + "-flux", id + "-flux"}, {"control plane", id}, {"host namespace", host}} {
		says(t, space, "Ready False Deleting", stage[0])
		theStandIn.behave(stage[1], behaviour{})
	}
	says(t, object, "Ready False Deleting", "namespace")
	reservations(t, id)
	theStandIn.behave("tenant-"+id, behaviour{})
	gone(t, object)
}

// callTable is what the golden file holds.
func callTable(t *testing.T, id string, up, down []call) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("# What one Tenant with its default CloudSpace costs\n\n" +
		"Requests of the operator to the host cluster's API server. Exact: test/integration compares.\n")
	for _, part := range []struct {
		title, key string
		made       []call
	}{{"From create to Ready", "up", up}, {"From delete to gone", "down", down}} {
		counts := map[string]int{}
		total := 0
		for _, c := range part.made {
			if c.about(id) && !c.standing() {
				counts[c.verb+" "+c.resource]++
				total++
			}
		}
		fmt.Fprintf(&text, "\n## %s: %d\n\n| verb | resource | count | what for |\n|---|---|---|---|\n", part.title, total)
		for _, row := range sorted(counts) {
			reason, ok := why[part.key][row]
			if !ok {
				t.Errorf("nobody has said what %s on the way %s is for", row, part.key)
			}
			verb, resource, _ := strings.Cut(row, " ")
			fmt.Fprintf(&text, "| %s | %s | %d | %s |\n", verb, resource, counts[row], reason)
		}
	}
	return text.String()
}

// sorted are the rows by resource, then by verb.
func sorted(counts map[string]int) []string {
	var rows []string
	for row := range counts {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b string) int {
		verbA, resourceA, _ := strings.Cut(a, " ")
		verbB, resourceB, _ := strings.Cut(b, " ")
		return strings.Compare(resourceA+" "+verbA, resourceB+" "+verbB)
	})
	return rows
}

// A pass over what is finished asks the API server nothing and tells it nothing, whatever wakes it.
func TestAPassThatFindsNothingToDoMakesNoCall(t *testing.T) {
	const id = "no-calls"
	object := reach(t, create(t, tenant(id)), "Ready")
	space := get(t, cloudSpace(id, "default"))
	settle(t, object, id)
	annotate := func(object client.Object) func() {
		return func() { merge(t, get(t, object), `{"metadata":{"annotations":{"example.com/look":"again"}}}`) }
	}
	release := &helmv2.HelmRelease{ObjectMeta: named(systemNamespace, id)}
	disturbances := []struct {
		what       string
		do         func()
		controller string
	}{
		{"an annotation of somebody else on the Tenant", annotate(object), "tenant"},
		{"an annotation of somebody else on the CloudSpace", annotate(space), "cloudspace"},
		{"one on the host namespace", annotate(namespace("vcluster-" + id)), "cloudspace"},
		{"one on the tenant's namespace", annotate(namespace("tenant-" + id)), "tenant"},
		{"one on the kubeconfig", annotate(secret(systemNamespace, "cloudspace-"+id+"-kubeconfig")), "cloudspace"},
		{"one on the quota", annotate(&corev1.ResourceQuota{ObjectMeta: named("vcluster-"+id, "cloudspace")}), "cloudspace"},
		{"one on the release", annotate(release), "cloudspace"},
		{"Flux looks at the release again", func() {
			fresh := get(t, release)
			before := fresh.DeepCopy()
			set(fresh, "Reconciling", "True", "Progressing", "Fulfilling prerequisites")
			if err := api.Status().Patch(t.Context(), fresh, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}, "cloudspace"},
		{"the vCluster's own Secret is written again", annotate(secret("vcluster-"+id, "vc-"+id)), "cloudspace"},
	}
	for _, d := range disturbances {
		t.Run(d.what, func(t *testing.T) {
			mark, passes := calls.mark(), passesOf(t, d.controller)
			d.do()
			eventually(t, func(g gomega.Gomega) { g.Expect(passesOf(t, d.controller)).To(gomega.BeNumerically(">", passes)) })
			for _, c := range calls.since(mark) {
				if !c.standing() && c.about(id) {
					t.Errorf("%s %s %s/%s", c.verb, c.resource, c.namespace, c.name)
				}
			}
		})
	}
}

// settle waits until a pass over the finished Tenant has made no call.
func settle(t *testing.T, object client.Object, id string) {
	t.Helper()
	tick := 0
	eventually(t, func(g gomega.Gomega) {
		mark, passes := calls.mark(), passesOf(t, "tenant")
		tick++
		merge(t, get(t, object), fmt.Sprintf(`{"metadata":{"annotations":{"example.com/settle":"%d"}}}`, tick))
		g.Eventually(func() float64 { return passesOf(t, "tenant") }).WithTimeout(backgroundTimeout).Should(gomega.BeNumerically(">", passes))
		g.Expect(slices.ContainsFunc(calls.since(mark), func(c call) bool { return c.about(id) && !c.standing() })).To(gomega.BeFalse())
	})
}

// passesOf is how many passes a controller of the operator has made.
func passesOf(t *testing.T, controller string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == "controller" && l.GetValue() == controller }) {
				total += m.GetCounter().GetValue()
			}
		}
	}
	return total
}
