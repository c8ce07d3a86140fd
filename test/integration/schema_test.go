// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// written is an object of the API group as a person writes it: its kind, its name and its spec as YAML.
func written(t *testing.T, kind, name, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte("spec: {"+spec+"}"), &object.Object); err != nil {
		t.Fatal(err)
	}
	object.SetAPIVersion("tenancy.kubeopera.io/v1alpha1")
	object.SetKind(kind)
	object.SetName(name)
	if kind == "CloudSpace" {
		object.SetNamespace("default")
	}
	return object
}

// Both sides of every limit of the schema. refused is what the API server says; nothing means that it accepts.
func TestSchema(t *testing.T) {
	t.Parallel()
	member := func(m string) string { return "members: [{" + m + "}]" }
	members := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{kind: User, name: "kubeopera:%d", role: Viewer}`, i))
		}
		return "members: [" + strings.Join(all, ", ") + "]"
	}
	const (
		tenantName = "a tenant id must start with a letter, consist of lower case letters, digits and single dashes, and not end with a dash"
		spaceName  = "the name of a CloudSpace must start with a letter, consist of lower case letters, digits and single dashes, and not end with a dash"
		hostname   = "endpoint.hostname must be a DNS name: lower case letters, digits, dashes and dots, without a wildcard"
		unsound    = "amounts have at most 24 characters, and neither they nor their exponents can be negative"
		quotaOnly  = "hard knows cloudspaces, cpu, memory, storage and pods"
	)
	tests := []struct {
		what, kind, name, spec, refused string
	}{
		{"a tenant id of 24 characters", "Tenant", strings.Repeat("a", 24), "", ""},
		{"a tenant id of 25 characters", "Tenant", strings.Repeat("a", 25), "", "a tenant id can have at most 24 characters"},
		{"a tenant id of one letter", "Tenant", "a", "", ""},
		{"a tenant id with single dashes and digits", "Tenant", "a-1-b2", "", ""},
		{"a tenant id with two dashes in a row", "Tenant", "a--b", "", tenantName},
		{"a tenant id that starts with a digit", "Tenant", "1a", "", tenantName},
		{"a tenant id with a dot", "Tenant", "a.b", "", tenantName},
		{"a tenant id that ends with a dash", "Tenant", "a-", "", "a lowercase RFC 1123 subdomain"},
		{"a display name of 64 characters", "Tenant", "schema", "displayName: " + strings.Repeat("a", 64), ""},
		{"a display name in any language", "Tenant", "schema", `displayName: "Ångström 東京 \u200Fשלום 👩\u200D🔬"`, ""},
		{"a display name with a line break", "Tenant", "schema", `displayName: "a\nb"`, "displayName cannot contain control characters"},
		{"a display name that moves the cursor", "CloudSpace", "schema", `displayName: "a\u001b[2J"`, "displayName cannot contain control characters"},
		{"a display name that turns text around", "CloudSpace", "schema", `displayName: "a\u202Eb"`, "displayName cannot contain control characters"},
		{"a display name with a line break of its own kind", "CloudSpace", "schema", `displayName: "a\u2028b"`, "displayName cannot contain control characters"},
		{"a member whose name has a line break", "Tenant", "schema", member(`kind: User, name: "kubeopera:a\nb", role: Viewer`), "the name of a member cannot contain control characters"},
		{"a display name of 65 characters", "Tenant", "schema", "displayName: " + strings.Repeat("a", 65), "spec.displayName: Too long: may not be more than 64"},

		{"a user", "Tenant", "schema", member(`kind: User, name: "kubeopera:alice", role: Owner`), ""},
		{"a user that is not one of the platform", "Tenant", "schema", member(`kind: User, name: "system:admin", role: Owner`), "the name of a User or Group must start with kubeopera:"},
		{"a user with a namespace", "Tenant", "schema", member(`kind: User, name: "kubeopera:alice", namespace: x, role: Owner`), "a ServiceAccount needs a namespace; a User or Group has none"},
		{"a user with an empty namespace", "Tenant", "schema", member(`kind: User, name: "kubeopera:alice", namespace: "", role: Owner`), ""},
		{"a group of a tenant", "Tenant", "schema", member(`kind: Group, name: "kubeopera:tenant:a:devs", role: Editor`), ""},
		{"a group of no tenant", "Tenant", "schema", member(`kind: Group, name: "kubeopera:tenant:", role: Editor`), "only groups of a tenant"},
		{"a group of a tenant that cannot be", "Tenant", "schema", member(`kind: Group, name: "kubeopera:tenant:Other Tenant", role: Editor`), "only groups of a tenant"},
		{"a ServiceAccount that cannot be", "Tenant", "schema", member(`kind: ServiceAccount, name: "BAD NAME", namespace: a, role: Editor`), "the name of a ServiceAccount must consist of"},
		{"a ServiceAccount where none can be", "Tenant", "schema", member(`kind: ServiceAccount, name: a, namespace: "Bad NS", role: Editor`), "the namespace of a ServiceAccount must consist of"},
		{"a group of administrators", "Tenant", "schema", member(`kind: Group, name: "kubeopera:super-admins", role: Owner`), "only groups of a tenant, kubeopera:tenant:<id> or kubeopera:tenant:<id>:<group>, can be members"},
		{"a group of all", "Tenant", "schema", member(`kind: Group, name: "system:authenticated", role: Owner`), "the name of a User or Group must start with kubeopera:"},
		{"a ServiceAccount", "Tenant", "schema", member(`kind: ServiceAccount, name: gitops, namespace: tenant-a, role: Editor`), ""},
		{"a ServiceAccount without a namespace", "Tenant", "schema", member(`kind: ServiceAccount, name: gitops, role: Editor`), "a ServiceAccount needs a namespace; a User or Group has none"},
		{"another kind of member", "Tenant", "schema", member(`kind: Robot, name: "kubeopera:a", role: Owner`), `spec.members[0].kind: Unsupported value: "Robot"`},
		{"another role", "Tenant", "schema", member(`kind: User, name: "kubeopera:a", role: King`), `spec.members[0].role: Unsupported value: "King"`},
		{"a member without a role", "Tenant", "schema", member(`kind: User, name: "kubeopera:a"`), "spec.members[0].role: Required value"},
		{"a member without a name", "Tenant", "schema", member(`kind: User, name: "", role: Owner`), "spec.members[0].name"},
		{"a member twice", "Tenant", "schema", `members: [{kind: User, name: "kubeopera:a", role: Owner}, {kind: User, name: "kubeopera:a", role: Viewer}]`, "spec.members[1]: Duplicate value"},
		{"ServiceAccounts of one name in two namespaces", "Tenant", "schema", `members: [{kind: ServiceAccount, name: a, namespace: x, role: Owner}, {kind: ServiceAccount, name: a, namespace: "y", role: Owner}]`, ""},
		{"500 members", "Tenant", "schema", members(500), ""},
		{"501 members", "Tenant", "schema", members(501), "spec.members: Too many: 501: must have at most 500 items"},
		{"a template that cannot be", "Tenant", "schema", "defaultCloudSpace: {template: {spec: {resources: {cpu: 99m}}}}", "cpu must be between 100m and 100k cores"},

		{"a name of 20 characters", "CloudSpace", strings.Repeat("a", 20), "", ""},
		{"a name of 21 characters", "CloudSpace", strings.Repeat("a", 21), "", "the name of a CloudSpace can have at most 20 characters"},
		{"a name with two dashes in a row", "CloudSpace", "a--b", "", spaceName},
		{"a name that starts with a digit", "CloudSpace", "1a", "", spaceName},
		{"a name with a dot", "CloudSpace", "a.b", "", spaceName},
		{"the least of each resource", "CloudSpace", "schema", "resources: {cpu: 100m, memory: 64Mi, storage: 64Mi, pods: 8}, controlPlane: {etcd: {storage: 64Mi}}", ""},
		{"the most of each resource", "CloudSpace", "schema", "resources: {cpu: 100k, memory: 1Pi, storage: 1Pi, pods: 10000}", ""},
		{"CPU as a number", "CloudSpace", "schema", "resources: {cpu: 3}", ""},
		{"too little CPU", "CloudSpace", "schema", "resources: {cpu: 99m}", "cpu must be between 100m and 100k cores"},
		{"too much CPU", "CloudSpace", "schema", "resources: {cpu: 100001}", "cpu must be between 100m and 100k cores"},
		{"CPU below zero", "CloudSpace", "schema", `resources: {cpu: "-1"}`, "cpu must be between 100m and 100k cores"},
		{"CPU that is no quantity", "CloudSpace", "schema", "resources: {cpu: lots}", "spec.resources.cpu"},
		{"too little memory", "CloudSpace", "schema", "resources: {memory: 65535Ki}", "memory must be between 64Mi and 1Pi"},
		{"too much memory", "CloudSpace", "schema", "resources: {memory: 2Pi}", "memory must be between 64Mi and 1Pi"},
		{"an absurdly large amount of CPU", "CloudSpace", "schema", `resources: {cpu: "1e30"}`, "cpu must be between 100m and 100k cores"},
		{"an absurdly small amount of memory", "CloudSpace", "schema", "resources: {memory: 1n}", "memory must be between 64Mi and 1Pi"},
		{"CPU that would take the API server hours to read", "CloudSpace", "schema", `resources: {cpu: "1e-1000000000"}`, "cpu must be between 100m and 100k cores"},
		{"memory that would", "CloudSpace", "schema", `resources: {memory: "1E-1000000000"}`, "memory must be between 64Mi and 1Pi"},
		{"storage that would", "CloudSpace", "schema", `resources: {storage: "1e-1000000000"}, controlPlane: {highAvailability: true}`, "storage must be between 64Mi and 1Pi"},
		{"a volume that would", "CloudSpace", "schema", `controlPlane: {etcd: {storage: "1e-1000000000"}, highAvailability: true}`, "etcd storage must be between 64Mi and 64Gi"},
		{"CPU of very many digits", "CloudSpace", "schema", `resources: {cpu: "2.` + strings.Repeat("0", 400_000) + `"}`, "cpu must be between 100m and 100k cores"},
		{"too little storage", "CloudSpace", "schema", "resources: {storage: 65535Ki}", "storage must be between 64Mi and 1Pi"},
		{"too much storage", "CloudSpace", "schema", "resources: {storage: 2Pi}", "storage must be between 64Mi and 1Pi"},
		{"too few pods", "CloudSpace", "schema", "resources: {pods: 7}", "spec.resources.pods: Invalid value: 7: spec.resources.pods in body should be greater than or equal to 8"},
		{"too many pods", "CloudSpace", "schema", "resources: {pods: 10001}", "spec.resources.pods in body should be less than or equal to 10000"},
		{"a Kubernetes version", "CloudSpace", "schema", "kubernetesVersion: v1.36.0", ""},
		{"a Kubernetes version without v", "CloudSpace", "schema", "kubernetesVersion: 1.36.0", "kubernetesVersion must look like v1.36.0"},
		{"a Kubernetes version with a leading zero", "CloudSpace", "schema", "kubernetesVersion: v1.036.0", "kubernetesVersion must look like v1.36.0"},
		{"a Kubernetes version with more behind", "CloudSpace", "schema", "kubernetesVersion: v1.36.0-x", "kubernetesVersion must look like v1.36.0"},
		{"another size", "CloudSpace", "schema", "controlPlane: {size: Huge}", `spec.controlPlane.size: Unsupported value: "Huge": supported values: "Small", "Medium", "Large"`},
		{"the least etcd", "CloudSpace", "schema", "controlPlane: {etcd: {storage: 64Mi}}", ""},
		{"the most etcd", "CloudSpace", "schema", "resources: {storage: 64Gi}, controlPlane: {etcd: {storage: 64Gi}}", ""},
		{"more etcd than storage", "CloudSpace", "schema", "resources: {storage: 2Gi}, controlPlane: {etcd: {storage: 2049Mi}}", "controlPlane.etcd.storage is part of resources.storage and cannot be larger"},
		{"a StorageClass that cannot be", "CloudSpace", "schema", `controlPlane: {etcd: {storageClassName: "BAD NAME"}}`, "storageClassName must be the name of a StorageClass"},
		{"high availability", "CloudSpace", "schema", "controlPlane: {highAvailability: true}", ""},
		{"just room for three members of etcd", "CloudSpace", "schema", "resources: {storage: 6Gi, pods: 11}, controlPlane: {highAvailability: true, etcd: {storage: 2Gi}}", ""},
		{"no room for three members of etcd", "CloudSpace", "schema", "resources: {storage: 6143Mi}, controlPlane: {highAvailability: true, etcd: {storage: 2Gi}}", "with controlPlane.highAvailability etcd has three volumes: three times controlPlane.etcd.storage must be within resources.storage"},
		{"too few pods for high availability", "CloudSpace", "schema", "resources: {pods: 10}, controlPlane: {highAvailability: true}", "with controlPlane.highAvailability resources.pods must be at least 11"},
		{"an endpoint in the cluster", "CloudSpace", "schema", `endpoint: {type: InCluster, hostname: ""}`, ""},
		{"a load balancer", "CloudSpace", "schema", "endpoint: {type: LoadBalancer}", ""},
		{"a hostname", "CloudSpace", "schema", "endpoint: {type: Hostname, hostname: a.spaces.example.com}", ""},
		{"a hostname of 253 characters", "CloudSpace", "schema", "endpoint: {type: Hostname, hostname: " + strings.Repeat("a.", 126) + "a}", ""},
		{"a hostname of 255 characters", "CloudSpace", "schema", "endpoint: {type: Hostname, hostname: " + strings.Repeat("a.", 127) + "a}", "spec.endpoint.hostname: Too long: may not be more than 253"},
		{"a hostname with a label of 63 characters", "CloudSpace", "schema", "endpoint: {type: Hostname, hostname: " + strings.Repeat("a", 63) + ".example.com}", ""},
		{"a hostname with a label of 64 characters", "CloudSpace", "schema", "endpoint: {type: Hostname, hostname: " + strings.Repeat("a", 64) + ".example.com}", hostname},
		{"a hostname in upper case", "CloudSpace", "schema", "endpoint: {type: Hostname, hostname: A.example.com}", hostname},
		{"a hostname with a wildcard", "CloudSpace", "schema", `endpoint: {type: Hostname, hostname: "*.example.com"}`, hostname},
		{"a hostname with a dot at its end", "CloudSpace", "schema", "endpoint: {type: Hostname, hostname: a.example.com.}", hostname},
		{"a hostname with a port", "CloudSpace", "schema", `endpoint: {type: Hostname, hostname: "a.example.com:443"}`, hostname},
		{"a hostname that is an address", "CloudSpace", "schema", `endpoint: {type: Hostname, hostname: "192.0.2.1"}`, hostname},
		{"a hostname of another script", "CloudSpace", "schema", `endpoint: {type: Hostname, hostname: "\u0430.example.com"}`, hostname},
		{"the type Hostname without one", "CloudSpace", "schema", "endpoint: {type: Hostname}", "endpoint.type Hostname needs endpoint.hostname"},
		{"an empty hostname", "CloudSpace", "schema", `endpoint: {type: Hostname, hostname: ""}`, "endpoint.type Hostname needs endpoint.hostname"},
		{"a hostname in the cluster", "CloudSpace", "schema", "endpoint: {hostname: a.example.com}", "endpoint.hostname is only for endpoint.type Hostname"},
		{"a hostname for a load balancer", "CloudSpace", "schema", "endpoint: {type: LoadBalancer, hostname: a.example.com}", "endpoint.hostname is only for endpoint.type Hostname"},
		{"another endpoint", "CloudSpace", "schema", "endpoint: {type: NodePort}", `spec.endpoint.type: Unsupported value: "NodePort": supported values: "InCluster", "LoadBalancer", "Hostname"`},
		{"a template with a hostname that cannot be", "Tenant", "schema", "defaultCloudSpace: {template: {spec: {endpoint: {type: Hostname}}}}", "endpoint.type Hostname needs endpoint.hostname"},
		{"too little etcd", "CloudSpace", "schema", "controlPlane: {etcd: {storage: 65535Ki}}", "etcd storage must be between 64Mi and 64Gi"},
		{"too much etcd", "CloudSpace", "schema", "controlPlane: {etcd: {storage: 65Gi}}", "etcd storage must be between 64Mi and 64Gi"},
		{"a StorageClass of 254 characters", "CloudSpace", "schema", "controlPlane: {etcd: {storageClassName: " + strings.Repeat("a", 254) + "}}", "spec.controlPlane.etcd.storageClassName: Too long: may not be more than 253"},

		{"a quota of everything", "TenantQuota", "schema", `hard: {cloudspaces: "500", cpu: "16", memory: 32Gi, storage: 100Gi, pods: "200"}`, ""},
		{"a quota of nothing", "TenantQuota", "schema", `hard: {cpu: "0"}`, ""},
		{"a quota of nothing, with units", "TenantQuota", "schema", `hard: {cpu: 0m, memory: 0Gi, storage: "0.0", pods: 0k}`, ""},
		{"an unlimited quota", "TenantQuota", "schema", "", ""},
		{"a quota of something else", "TenantQuota", "schema", `hard: {gpus: "1"}`, quotaOnly},
		{"a quota below zero", "TenantQuota", "schema", `hard: {cpu: "-1"}`, unsound},
		{"an amount that would take the API server hours to read", "TenantQuota", "schema", `hard: {cpu: "1e-1000000000"}`, unsound},
		{"an amount of very many digits", "TenantQuota", "schema", `hard: {cpu: "2.` + strings.Repeat("0", 400_000) + `"}`, unsound},
		{"the most", "TenantQuota", "schema", `hard: {memory: 1Ei}`, ""},
		{"more than the most", "TenantQuota", "schema", `hard: {memory: 1025Pi}`, "amounts can be at most 1Ei"},
		{"an absurdly large amount", "TenantQuota", "schema", `hard: {cpu: "1e30"}`, "amounts can be at most 1Ei"},
		{"an absurdly small amount", "TenantQuota", "schema", `hard: {cpu: "1e-30"}`, unsound},
		{"a part of a byte", "TenantQuota", "schema", `hard: {memory: 100m}`, "amounts are zero, or at least 1m of cpu and 1 of anything else"},
		{"the largest number that fits", "TenantQuota", "schema", `hard: {memory: "9223372036854775807"}`, "amounts can be at most 1Ei"},
		{"a number that does not fit", "TenantQuota", "schema", `hard: {memory: "9223372036854775808"}`, "amounts can be at most 1Ei"},
		{"half a CloudSpace", "TenantQuota", "schema", `hard: {cloudspaces: "1.5"}`, "cloudspaces and pods are whole numbers"},
		{"pods in thousands", "TenantQuota", "schema", `hard: {pods: 1k}`, ""},
		{"mixed units", "TenantQuota", "schema", `hard: {cpu: 1500m, memory: 1G, storage: 1e9}`, ""},
		{"an amount that is none", "TenantQuota", "schema", `hard: {cpu: "1 "}`, "spec.hard"},
		{"501 CloudSpaces", "TenantQuota", "schema", `hard: {cloudspaces: "501"}`, "cloudspaces can be at most 500"},
		{"a quota with too long a name", "TenantQuota", strings.Repeat("a", 25), "", "a tenant id can have at most 24 characters"},
		{"a quota with a name no tenant can have", "TenantQuota", "a--b", "", tenantName},
	}
	for _, tt := range tests {
		t.Run(tt.kind+" with "+tt.what, func(t *testing.T) {
			t.Parallel()
			err := api.Create(t.Context(), written(t, tt.kind, tt.name, tt.spec), client.DryRunAll)
			switch {
			case tt.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
				t.Errorf("got %v, want it to say %s", err, tt.refused)
			}
		})
	}
}

// What is too large for an object is refused, whichever way it is written, and the operator goes on.
func TestWhatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	id := "large"
	reach(t, create(t, tenant(id)), "Ready")
	space := get(t, cloudSpace(id, "default"))
	large := strings.Repeat("x", 1_400_000)
	conditions := make([]map[string]any, 10_000)
	for i := range conditions {
		conditions[i] = map[string]any{
			"type": fmt.Sprintf("C%d", i), "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-11-30T00:00:00Z",
		}
	}
	for name, patch := range map[string]map[string]any{
		"an annotation of 1.4 MB":   {"metadata": map[string]any{"annotations": map[string]any{"example.com/large": large}}},
		"a label of 1.4 MB":         {"metadata": map[string]any{"labels": map[string]any{"example.com/large": large}}},
		"a display name of 1.4 MB":  {"spec": map[string]any{"displayName": large}},
		"an amount of 1.4 MB":       {"spec": map[string]any{"resources": map[string]any{"cpu": strings.Repeat("9", 1_400_000)}}},
		"10,000 conditions":         {"status": map[string]any{"conditions": conditions}},
		"a phase that there is not": {"status": map[string]any{"phase": large}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			write := api.Patch
			if patch["status"] != nil {
				write = func(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
					return api.Status().Patch(ctx, o, p)
				}
			}
			if err := write(t.Context(), space.DeepCopy(), client.RawPatch(types.MergePatchType, text)); err == nil {
				t.Error("it is taken")
			}
		})
	}
	reach(t, create(t, tenant("after-large")), "Ready")
}

func TestAnUnknownFieldIsNamed(t *testing.T) {
	t.Parallel()
	strict := client.WithFieldValidation(api, "Strict")
	for kind, field := range map[string]string{"Tenant": "spec.colour", "CloudSpace": "spec.colour", "TenantQuota": "spec.colour"} {
		err := strict.Create(t.Context(), written(t, kind, "schema", "colour: red"), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), `unknown field "`+field+`"`) {
			t.Errorf("%s: got %v, want it to name %s", kind, err, field)
		}
	}
}

// An empty spec is a small, useful CloudSpace, also as the template of a Tenant, and also when the spec is left out.
func TestDefaults(t *testing.T) {
	t.Parallel()
	space := map[string]any{
		"resources":    map[string]any{"cpu": "2", "memory": "4Gi", "storage": "10Gi", "pods": int64(50)},
		"controlPlane": map[string]any{"size": "Small", "highAvailability": false, "etcd": map[string]any{"storage": "2Gi"}},
		"endpoint":     map[string]any{"type": "InCluster"},
	}
	tests := []struct {
		what, kind, spec string
		leaveOut         bool
		want             map[string]any
	}{
		{what: "an empty CloudSpace", kind: "CloudSpace", want: space},
		{what: "a CloudSpace without a spec", kind: "CloudSpace", leaveOut: true, want: space},
		{what: "a CloudSpace with a part of each", kind: "CloudSpace", spec: `resources: {cpu: "3"}, controlPlane: {etcd: {storageClassName: fast}}`, want: map[string]any{
			"resources":    map[string]any{"cpu": "3", "memory": "4Gi", "storage": "10Gi", "pods": int64(50)},
			"controlPlane": map[string]any{"size": "Small", "highAvailability": false, "etcd": map[string]any{"storage": "2Gi", "storageClassName": "fast"}},
			"endpoint":     map[string]any{"type": "InCluster"},
		}},
		{what: "an empty Tenant", kind: "Tenant", want: map[string]any{"defaultCloudSpace": map[string]any{"template": map[string]any{"spec": space}}}},
		{what: "a Tenant without a spec", kind: "Tenant", leaveOut: true, want: map[string]any{"defaultCloudSpace": map[string]any{"template": map[string]any{"spec": space}}}},
		{what: "a member without a namespace", kind: "Tenant", spec: `members: [{kind: User, name: "kubeopera:a", role: Owner}]`, want: map[string]any{
			"members":           []any{map[string]any{"kind": "User", "name": "kubeopera:a", "namespace": "", "role": "Owner"}},
			"defaultCloudSpace": map[string]any{"template": map[string]any{"spec": space}},
		}},
		{what: "an empty TenantQuota", kind: "TenantQuota", want: map[string]any{}},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			object := written(t, tt.kind, "schema", tt.spec)
			if tt.leaveOut {
				delete(object.Object, "spec")
			}
			if err := api.Create(t.Context(), object, client.DryRunAll); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, object.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeChangedAfterCreation(t *testing.T) {
	t.Parallel()
	object := create(t, &v1alpha1.CloudSpace{ObjectMeta: named("default", "immutable")})
	tests := []change{
		{"the size of etcd's volume", `{"spec":{"controlPlane":{"etcd":{"storage":"4Gi"}}}}`, "controlPlane.etcd cannot be changed after creation"},
		{"the StorageClass of etcd", `{"spec":{"controlPlane":{"etcd":{"storageClassName":"fast"}}}}`, "controlPlane.etcd cannot be changed after creation"},
		{"high availability", `{"spec":{"controlPlane":{"highAvailability":true}}}`, "controlPlane.highAvailability cannot be changed after creation"},
		{"the endpoint", `{"spec":{"endpoint":{"type":"LoadBalancer"}}}`, "endpoint cannot be changed after creation"},
		{"the whole endpoint taken away", `{"spec":{"endpoint":null}}`, ""},
		{"the whole control plane taken away", `{"spec":{"controlPlane":null}}`, ""},
		{"the size of the control plane", `{"spec":{"controlPlane":{"size":"Large"}}}`, ""},
		{"resources", `{"spec":{"resources":{"cpu":"8"}}}`, ""},
		{"the version", `{"spec":{"kubernetesVersion":"v1.36.1"}}`, ""},
	}
	refusesChanges(t, object, tests)

	reached := create(t, &v1alpha1.CloudSpace{ObjectMeta: named("default", "immutable-reached"), Spec: v1alpha1.CloudSpaceSpec{
		ControlPlane: v1alpha1.ControlPlane{HighAvailability: true},
		Endpoint:     v1alpha1.Endpoint{Type: v1alpha1.EndpointHostname, Hostname: "immutable.example.com"},
	}})
	refusesChanges(t, reached, []change{
		{"its hostname", `{"spec":{"endpoint":{"hostname":"other.example.com"}}}`, "endpoint cannot be changed after creation"},
		{"its endpoint taken away", `{"spec":{"endpoint":null}}`, "endpoint cannot be changed after creation"},
		{"its control plane taken away", `{"spec":{"controlPlane":null}}`, "controlPlane.highAvailability cannot be changed after creation"},
	})
}

// change is one that a person makes; refused is what the API server says, nothing means that it accepts.
type change struct{ what, change, refused string }

func refusesChanges(t *testing.T, object client.Object, changes []change) {
	t.Helper()
	for _, tt := range changes {
		t.Run(tt.what, func(t *testing.T) {
			err := api.Patch(t.Context(), object.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(tt.change)), client.DryRunAll)
			switch {
			case tt.refused == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)):
				t.Errorf("got %v, want it to say %s", err, tt.refused)
			}
		})
	}
}

// Who may write an object's spec cannot write its status with it.
func TestStatusIsASubresource(t *testing.T) {
	t.Parallel()
	// What a new object has for a status: that nobody has looked at it yet.
	unseen := map[string]any{"observedGeneration": int64(-1)}
	for kind, want := range map[string]any{"Tenant": unseen, "CloudSpace": unseen, "TenantQuota": unseen} {
		object := written(t, kind, "schema", "")
		object.Object["status"] = map[string]any{"observedGeneration": int64(9), "phase": "Ready"}
		if err := api.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, object.Object["status"]); diff != "" {
			t.Errorf("%s: status after create (-want +got):\n%s", kind, diff)
		}
	}
}
