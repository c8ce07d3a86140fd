// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

const (
	noNodePorts = "ports of nodes are not available"
	noEndpoints = "those made by hand are not available"
	noPriority  = "the PriorityClass cloudspace-control-plane is for control planes of CloudSpaces"
	noClass     = "the PriorityClass of a CloudSpace's pods is cloudspace-workload"
	noVolume    = "volumes of a pod are of a ConfigMap"
	noYears     = "terminationGracePeriodSeconds of a CloudSpace's pods is an hour at most"
	noStatus    = "a syncer tells conditions alone"
	noChange    = "a syncer changes no more"
	noMetadata  = "of the platform, tenancy.kubeopera.io/, cannot be changed"
)

// serviceIn is a Service as a syncer makes it.
func serviceIn(namespace, name string, alter func(*corev1.Service)) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"vcluster.loft.sh/managed-by": "stolen"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"a": "b"}},
	}
	if alter != nil {
		alter(service)
	}
	return service
}

func balanced(alter func(*corev1.Service)) func(*corev1.Service) {
	return func(service *corev1.Service) {
		service.Spec.Type, service.Spec.AllocateLoadBalancerNodePorts = corev1.ServiceTypeLoadBalancer, new(false)
		alter(service)
	}
}

// A stolen token of a syncer is bound by more than its Role, which is given all rights here.
func TestASyncerMayNotDoAllThatItsRoleLetsIt(t *testing.T) {
	t.Parallel()
	const id, in = "stolen", "vcluster-stolen"
	reach(t, create(t, tenant(id)), "Ready")
	service := func(name string, alter func(*corev1.Service)) func(context.Context, client.Client) error {
		return made(serviceIn(in, name, alter))
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: in, Name: "aimed", Labels: map[string]string{discoveryv1.LabelServiceName: "plain", discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.244.0.99"}}},
	}
	aimed := &corev1.Endpoints{ObjectMeta: named(in, "aimed"), Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: "10.244.0.99"}}}}} //nolint:staticcheck // hostile use of an old kind.
	priority := func(pod *corev1.Pod) {
		pod.Spec.PriorityClassName, pod.Labels = "cloudspace-control-plane", map[string]string{"app": "vcluster"}
	}
	syncer := identity(t, "system:serviceaccount:"+in+":vc-"+id, masters)
	try(t, syncer, []attempt{
		{"a Service within", service("plain", nil), ""},
		{"a headless one", service("headless", func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }), ""},
		{"a load balancer without ports of nodes", service("lb", balanced(func(s *corev1.Service) { s.Annotations = map[string]string{"vcluster.loft.sh/object-name": "a"} })), "exceeded quota"},
		{"a port of nodes", service("np", func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }), "NodePort and ExternalName are not available"},
		{"a Service that becomes one", patched(serviceIn(in, "plain", nil), `{"spec":{"type":"NodePort"}}`), "NodePort and ExternalName are not available"},
		{"a name of somebody else", service("en", func(s *corev1.Service) {
			s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "kubernetes.default.svc.cluster.local"}
		}), "NodePort and ExternalName are not available"},
		{"an address of somebody else", service("ei", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.168.255.2"} }), "externalIPs are not available"},
		{"one added later", patched(serviceIn(in, "plain", nil), `{"spec":{"externalIPs":["192.168.255.2"]}}`), "externalIPs are not available"},
		{"a load balancer with ports of nodes", service("lb1", balanced(func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = nil })), noNodePorts},
		{"a load balancer with a port of its choice", service("lb2", balanced(func(s *corev1.Service) { s.Spec.Ports[0].NodePort = 30123 })), noNodePorts},
		{"a load balancer with a port for health", service("lb3", balanced(func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal })), noNodePorts},
		{"a load balancer with an address of its choice", service("lb4", balanced(func(s *corev1.Service) { s.Spec.LoadBalancerIP = "203.0.113.1" })), "loadBalancerIP"},
		{"a load balancer with sources of its choice", service("lb5", balanced(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"0.0.0.0/0"} })), "loadBalancerSourceRanges"},
		{"a load balancer of another class", service("lb6", balanced(func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("example.com/internal") })), "loadBalancerClass"},
		{"an address by an annotation", service("lb7", balanced(func(s *corev1.Service) {
			s.Annotations = map[string]string{"metallb.io/loadBalancerIPs": "203.0.113.1"}
		})), "annotations of a LoadBalancer"},
		{"an annotation first, the load balancer then", service("lb8", func(s *corev1.Service) {
			s.Annotations = map[string]string{"metallb.io/loadBalancerIPs": "203.0.113.1"}
		}), ""},
		{"that one turned", patched(serviceIn(in, "lb8", nil), `{"spec":{"type":"LoadBalancer","allocateLoadBalancerNodePorts":false}}`), "annotations of a LoadBalancer"},
		{"endpoints of its choice", made(aimed), noEndpoints},
		{"slices of its choice", made(slice), noEndpoints},
		{"a workload", made(podIn(in, "workload", func(p *corev1.Pod) { p.Labels = map[string]string{"vcluster.loft.sh/managed-by": id} })), ""},
		{"a label for it", patched(podIn(in, "workload", nil), `{"metadata":{"labels":{"a":"b"}}}`), ""},
		{"a pod of the control plane", made(podIn(in, "fake", func(p *corev1.Pod) { p.Labels = map[string]string{"release": id} })), "a syncer makes no pods of control planes"},
		{"a workload that becomes one", patched(podIn(in, "workload", nil), `{"metadata":{"labels":{"release":"`+id+`"}}}`), "a syncer makes no pods of control planes"},
		{"the same by way of its status", statusPatched(podIn(in, "workload", nil), `{"metadata":{"labels":{"release":"`+id+`"}}}`), "a syncer makes no pods of control planes"},
		{"a label of ours by way of its status", statusPatched(podIn(in, "workload", nil), `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":"a"}}}`), "labels " + noMetadata},
		{"an annotation of ours by way of its status", statusPatched(podIn(in, "workload", nil), `{"metadata":{"annotations":{"tenancy.kubeopera.io/revision":"a"}}}`), "annotations " + noMetadata},
		{"what a readiness gate waits for", statusPatched(podIn(in, "workload", nil), `{"status":{"conditions":[{"type":"example.com/ready","status":"True"}]}}`), ""},
		{"an address of its choice", statusPatched(podIn(in, "workload", nil), `{"status":{"podIP":"10.244.0.99","podIPs":[{"ip":"10.244.0.99"}]}}`), noStatus},
		{"a node's address of its choice", statusPatched(podIn(in, "workload", nil), `{"status":{"hostIP":"192.168.255.2","hostIPs":[{"ip":"192.168.255.2"}]}}`), noStatus},
		{"an end that no quota counts", statusPatched(podIn(in, "workload", nil), `{"status":{"phase":"Succeeded"}}`), noStatus},
		{"containers that run", statusPatched(podIn(in, "workload", nil), `{"status":{"containerStatuses":[{"name":"a","image":"a","imageID":"a","ready":true,"restartCount":0}]}}`), noStatus},
		{"a pod with the priority of control planes", made(podIn(in, "high", priority)), "the PriorityClass "},
		{"a pod with the priority of nodes", made(podIn(in, "higher", ofClass("system-node-critical"))), noClass},
		{"a pod with the priority of clusters", made(podIn(in, "higher", ofClass("system-cluster-critical"))), noClass},
		{"a pod with the priority of the platform", made(podIn(in, "higher", ofClass("kubeopera-platform"))), noClass},
		{"a pod with no priority", made(podIn(in, "lower", ofClass(""))), noClass},
		{"a pod with volumes of Kubernetes' own", made(podIn(in, "volumes", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{
				{Name: "a", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "b", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}}},
				{Name: "c", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}},
				{Name: "d", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}},
				{Name: "e", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
				{Name: "f", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a"}}},
				{Name: "g", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimIn("", "", "").Spec}}}},
				{Name: "h", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: "example.com/a:1"}}},
			}
		})), ""},
		{"a workload that says it is another's", made(podIn(in, "whose", func(p *corev1.Pod) { p.Labels = map[string]string{"tenancy.kubeopera.io/tenant": "other"} })), "labels " + noMetadata},
		{"a pod that is the syncer", made(podIn(in, "syncer", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "vc-" + id })), "a pod of a CloudSpace is not its syncer"},
		{"a pod that takes an hour to end", made(podIn(in, "slow", wants(3600))), ""},
		{"years, when it is deleted", ended(podIn(in, "slow", nil), 1_000_000), "is deleted with an hour to end at most"},
		{"an hour, when it is deleted", ended(podIn(in, "slow", nil), 3600), ""},
		{"a pod that takes years to end", made(podIn(in, "years", wants(1_000_000))), noYears},
		{"a pod that never ends", made(podIn(in, "held", held)), "a syncer sets no finalizers"},
		{"a pod that is kept from its end", patched(podIn(in, "workload", nil), `{"metadata":{"finalizers":["example.com/hold"]}}`), "a syncer sets no finalizers"},
		{"the same by way of its status", statusPatched(podIn(in, "workload", nil), `{"metadata":{"finalizers":["example.com/hold"]}}`), "a syncer sets no finalizers"},
		{"a Service of the platform kept from its end", patched(serviceIn(in, id, nil), `{"metadata":{"finalizers":["example.com/hold"]}}`), "a syncer sets no finalizers"},
		{"a ConfigMap that never ends", made(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: "held", Finalizers: []string{"example.com/hold"}}}), "a syncer sets no finalizers"},
		{"a Secret", made(secret(in, "kept")), ""},
		{"a token that never ends", made(secret(in, "token"), func(o client.Object) {
			token, _ := o.(*corev1.Secret)
			token.Type = corev1.SecretTypeServiceAccountToken
			token.Annotations = map[string]string{corev1.ServiceAccountNameKey: "vc-" + id}
		}), "tokens of the host's ServiceAccounts are not available"},
		{"a Secret that says so", made(secret(in, "whose"), labelled(map[string]string{"tenancy.kubeopera.io/owner-uid": "a"})), "labels " + noMetadata},
		{"a Service that says so in an annotation", service("whose", func(s *corev1.Service) { s.Annotations = map[string]string{"tenancy.kubeopera.io/revision": "a"} }), "annotations " + noMetadata},
		{"a label of ours taken off what the chart made", patched(serviceIn(in, id, nil), `{"metadata":{"labels":{"tenancy.kubeopera.io/owner-uid":null}}}`), "labels " + noMetadata},
		{"new certificates for its pods", patched(deploymentOf(id), `{"spec":{"template":{"metadata":{"annotations":{"vcluster.loft.sh/rolled":"1"}}}}}`), ""},
		{"a pause of it", patched(deploymentOf(id), `{"spec":{"paused":true}}`), noChange},
		{"another way to roll it", patched(deploymentOf(id), `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`), noChange},
		{"an owner for it", patched(deploymentOf(id), `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"b"}]}}`), noChange},
		{"a finalizer for it", patched(deploymentOf(id), `{"metadata":{"finalizers":["example.com/hold"]}}`), noChange},
		{"another revision of it", patched(deploymentOf(id), `{"metadata":{"annotations":{"deployment.kubernetes.io/revision":"7"}}}`), noChange},
		{"etcd's volumes deleted with it", patched(&appsv1.StatefulSet{ObjectMeta: named(in, id+"-etcd")}, `{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete","whenScaled":"Delete"}}}`), noChange},
		{"etcd rolled by hand alone", patched(&appsv1.StatefulSet{ObjectMeta: named(in, id+"-etcd")}, `{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`), noChange},
		{"another image for its pods", patched(deploymentOf(id), `{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"example.com/evil:1"}]}}}}`), noChange},
		{"other labels for its pods", patched(deploymentOf(id), `{"spec":{"template":{"metadata":{"labels":{"release":"`+id+`"}}}}}`), noChange},
		{"more of them", patched(deploymentOf(id), `{"spec":{"replicas":5}}`), noChange},
		{"another image for etcd", patched(&appsv1.StatefulSet{ObjectMeta: named(in, id+"-etcd")}, `{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"example.com/evil:1"}]}}}}`), noChange},
		{"a claim", made(claimIn(in, "claim", "")), ""},
		{"a claim for somebody else's volume", made(claimIn(in, "taken", "pvc-1")), "a claim cannot name its volume"},
		{"one that asks for it later", patched(claimIn(in, "claim", ""), `{"spec":{"volumeName":"pvc-1"}}`), "a claim cannot name its volume"},
		{"one of a pod that asks for it", made(podIn(in, "taker", func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
				VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimIn("", "", "pvc-1").Spec},
			}}}}
		})), "a claim cannot name its volume"},
		{"one that chooses among those there are", made(claimIn(in, "chooser", ""), func(o client.Object) {
			claim, _ := o.(*corev1.PersistentVolumeClaim)
			claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}), "a claim cannot choose among volumes"},
		{"pod security lowered", patched(namespace(in), `{"metadata":{"labels":{"`+psa+`":"privileged"}}}`), noHost},
		{"the quota raised", patched(&corev1.ResourceQuota{ObjectMeta: named(in, "cloudspace")}, `{"spec":{"hard":{"pods":"1000"}}}`), noHand},
	})
	t.Run("a claim that has its volume", func(t *testing.T) {
		if err := admin.Patch(t.Context(), claimIn(in, "claim", ""), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"volumeName":"pvc-of-the-provisioner"}}`))); err != nil {
			t.Fatal(err)
		}
		try(t, syncer, []attempt{{"is labelled", patched(claimIn(in, "claim", ""), `{"metadata":{"labels":{"a":"b"}}}`), ""}})
	})
	t.Run("a pod of the control plane", func(t *testing.T) {
		pod := podIn(in, "server", func(p *corev1.Pod) {
			p.Labels, p.Spec.PriorityClassName = map[string]string{"release": id}, "cloudspace-control-plane"
		})
		if err := identity(t, "system:serviceaccount:kube-system:replicaset-controller", masters).Create(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		try(t, syncer, []attempt{
			{"with an end", patched(podIn(in, "server", nil), `{"spec":{"activeDeadlineSeconds":1}}`), "leaves pods of control planes as they are"},
			{"with a container more", ephemeral(podIn(in, "server", nil)), "leaves pods of control planes as they are"},
			{"without its label", patched(podIn(in, "server", nil), `{"metadata":{"labels":{"release":null}}}`), "a syncer makes no pods of control planes"},
			{"annotated", patched(podIn(in, "server", nil), `{"metadata":{"annotations":{"a":"b"}}}`), ""},
		})
	})
	t.Run("a pod whose volumes its node mounts", func(t *testing.T) { mountedByTheNode(t, syncer, in) })
	t.Run("a pod that escapes", func(t *testing.T) { escapes(t, in, id) })
}

// The load balancer of the CloudSpace's own endpoint is in its host namespace too.
func TestASyncerLeavesTheLoadBalancerAsItIs(t *testing.T) {
	t.Parallel()
	const id, in = "stolen-lb", "vcluster-stolen-lb"
	create(t, tenant(id, withEndpoint(v1alpha1.EndpointLoadBalancer, "")))
	own := serviceIn(in, id, nil)
	eventually(t, func(g gomega.Gomega) {
		g.Expect(api.Get(t.Context(), client.ObjectKeyFromObject(own), own)).To(gomega.Succeed())
	})
	if err := api.Patch(t.Context(), own.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/internal":"true"}}}`))); err != nil {
		t.Fatal(err)
	}
	const asIs = "a syncer leaves Services of the platform as they are"
	try(t, identity(t, "system:serviceaccount:"+in+":vc-"+id, masters), []attempt{
		{"a label of its own", patched(own.DeepCopy(), `{"metadata":{"labels":{"example.com/a":"b"}}}`), ""},
		{"an address by an annotation", patched(own.DeepCopy(), `{"metadata":{"annotations":{"metallb.io/loadBalancerIPs":"203.0.113.1"}}}`), asIs},
		{"an annotation taken off", patched(own.DeepCopy(), `{"metadata":{"annotations":{"example.com/internal":null}}}`), asIs},
		{"ports of nodes", patched(own.DeepCopy(), `{"spec":{"allocateLoadBalancerNodePorts":true}}`), asIs},
		{"other pods behind it", patched(own.DeepCopy(), `{"spec":{"selector":{"app":"evil"}}}`), asIs},
	})
}

// wants is a pod on a node that says how many seconds it takes to end.
func wants(seconds int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = "a-node", new(seconds)
	}
}

// ended deletes a pod and gives it so many seconds.
func ended(pod *corev1.Pod, seconds int64) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, pod, client.GracePeriodSeconds(seconds))
	}
}

func held(pod *corev1.Pod) { pod.Finalizers = []string{"example.com/hold"} }

func ofClass(name string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = name }
}

// ephemeral adds a container to a pod that runs.
func ephemeral(pod *corev1.Pod) func(context.Context, client.Client) error {
	return func(ctx context.Context, c client.Client) error {
		patch := `{"spec":{"ephemeralContainers":[{"name":"more","image":"example.com/evil:1"}]}}`
		return c.SubResource("ephemeralcontainers").Patch(ctx, pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	}
}

// No container in a host namespace can send packets under another address, whatever it asks for.
func TestNoContainerHasRawSockets(t *testing.T) {
	t.Parallel()
	const id, in = "raw", "vcluster-raw"
	reach(t, create(t, tenant(id)), "Ready")
	syncer := identity(t, "system:serviceaccount:"+in+":vc-"+id, masters)
	with := func(name string, security *corev1.SecurityContext) corev1.Container {
		little := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
		return corev1.Container{Name: name, Image: "example.com/a:1", SecurityContext: security, Resources: corev1.ResourceRequirements{Requests: little, Limits: little}}
	}
	pod := podIn(in, "forms", func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{with("first", nil), with("second", &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"CHOWN"}}})}
		p.Spec.Containers = []corev1.Container{
			with("nothing", nil),
			with("user", &corev1.SecurityContext{RunAsUser: new(int64(7))}),
			with("more", &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CHOWN"}}}),
			with("less", &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"CHOWN", "KILL"}}}),
			with("none", &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}),
			with("already", &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"NET_RAW"}}}),
		}
	})
	if err := syncer.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "another"} {
		patch := `{"spec":{"ephemeralContainers":[{"name":"` + name + `","image":"example.com/a:1"}]}}`
		if err := syncer.SubResource("ephemeralcontainers").Patch(t.Context(), pod, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		got[c.Name] = fmt.Sprint(c.SecurityContext.Capabilities.Drop, c.SecurityContext.Capabilities.Add, c.SecurityContext.RunAsUser != nil)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		got[c.Name] = fmt.Sprint(c.SecurityContext.Capabilities.Drop)
	}
	want := map[string]string{
		"first": "[NET_RAW] [] false", "second": "[CHOWN NET_RAW] [] false", "nothing": "[NET_RAW] [] false", "user": "[NET_RAW] [] true", "more": "[NET_RAW] [CHOWN] false",
		"less": "[CHOWN KILL NET_RAW] [] false", "none": "[ALL] [] false", "already": "[NET_RAW] [] false", "one": "[NET_RAW]", "another": "[NET_RAW]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what containers do without, and have (-want +got):\n%s", diff)
	}
}

// A limit of 0 is none to a node, and nothing to a quota: a container with it would take all that a node has.
func TestNoContainerIsWithoutLimits(t *testing.T) {
	t.Parallel()
	const id, in = "limitless", "vcluster-limitless"
	reach(t, create(t, tenant(id)), "Ready")
	of := func(cpu, memory string) corev1.ResourceRequirements {
		amounts := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
		return corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
	}
	pod := func(name string, alter func(*corev1.PodSpec)) *corev1.Pod {
		return podIn(in, name, func(p *corev1.Pod) { alter(&p.Spec) })
	}
	resized := func(cpu string) func(context.Context, client.Client) error {
		return func(ctx context.Context, c client.Client) error {
			patch := `{"spec":{"containers":[{"name":"a","resources":{"requests":{"cpu":"` + cpu + `"},"limits":{"cpu":"` + cpu + `"}}}]}}`
			return c.SubResource("resize").Patch(ctx, podIn(in, "little", nil), client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
		}
	}
	try(t, identity(t, "system:serviceaccount:"+in+":vc-"+id, masters), []attempt{
		{"a little", made(pod("little", func(s *corev1.PodSpec) {
			s.Containers[0].Resources = corev1.ResourceRequirements{Requests: of("1m", "1Mi").Requests, Limits: of("3m", "2Mi").Limits}
		})), ""},
		{"all CPU", made(pod("a", func(s *corev1.PodSpec) { s.Containers[0].Resources = of("0", "1Mi") })), "minimum cpu usage per Container"},
		{"all memory", made(pod("b", func(s *corev1.PodSpec) { s.Containers[0].Resources = of("1m", "0") })), "minimum memory usage per Container"},
		{"all, before it starts", made(pod("c", func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{Name: "b", Image: "example.com/a:1", Resources: of("0", "0")}}
		})), "minimum memory usage per Container"},
		{"all, of the pod", made(pod("d", func(s *corev1.PodSpec) { s.Resources = new(of("0", "0")) })), "Invalid value"},
		{"a little more", resized("2m"), ""},
		{"all, later", resized("0"), "minimum cpu usage per Container"},
	})
}

// mountedByTheNode tries volumes that a node mounts by its own network, past all NetworkPolicies.
func mountedByTheNode(t *testing.T, syncer client.Client, in string) {
	t.Helper()
	sources := map[string]corev1.VolumeSource{
		"nfs":       {NFS: &corev1.NFSVolumeSource{Server: "10.0.0.1", Path: "/"}},
		"iscsi":     {ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2030-01.com.example:a", Lun: 0}},
		"cephfs":    {CephFS: &corev1.CephFSVolumeSource{Monitors: []string{"10.0.0.1"}}},
		"rbd":       {RBD: &corev1.RBDVolumeSource{CephMonitors: []string{"10.0.0.1"}, RBDImage: "a"}},
		"glusterfs": {Glusterfs: &corev1.GlusterfsVolumeSource{EndpointsName: "a", Path: "a"}},
		"git":       {GitRepo: &corev1.GitRepoVolumeSource{Repository: "https://10.0.0.1/a"}},
		"csi":       {CSI: &corev1.CSIVolumeSource{Driver: "nfs.csi.example.com"}},
		"fc":        {FC: &corev1.FCVolumeSource{TargetWWNs: []string{"a"}, Lun: new(int32)}},
		"flex":      {FlexVolume: &corev1.FlexVolumeSource{Driver: "example.com/a"}},
	}
	for name, source := range sources {
		try(t, syncer, []attempt{{name, made(podIn(in, "mounts-"+name, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "a", VolumeSource: source}}
		})), noVolume}})
	}
}

func claimIn(namespace, name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: named(namespace, name), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: volume,
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
	}}
}

// escapes tries what pod security forbids, with the token of the syncer straight at the host.
func escapes(t *testing.T, in, id string) {
	t.Helper()
	pod := func(name string, alter func(*corev1.PodSpec)) func(context.Context, client.Client) error {
		return made(podIn(in, name, func(p *corev1.Pod) { alter(&p.Spec) }))
	}
	context := func(change func(*corev1.SecurityContext)) func(*corev1.PodSpec) {
		return func(spec *corev1.PodSpec) {
			spec.Containers[0].SecurityContext = &corev1.SecurityContext{}
			change(spec.Containers[0].SecurityContext)
		}
	}
	const forbidden = `violates PodSecurity "baseline:latest"`
	try(t, identity(t, "system:serviceaccount:"+in+":vc-"+id, masters), []attempt{
		{"nothing of that", pod("plain", func(*corev1.PodSpec) {}), ""},
		{"privileged", pod("a", context(func(c *corev1.SecurityContext) { c.Privileged = new(true) })), forbidden},
		{"a capability", pod("b", context(func(c *corev1.SecurityContext) {
			c.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}
		})), forbidden},
		{"raw packets", pod("c", context(func(c *corev1.SecurityContext) {
			c.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"NET_RAW"}}
		})), forbidden},
		{"no seccomp", pod("e", context(func(c *corev1.SecurityContext) {
			c.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		})), forbidden},
		{"a folder of the node", pod("f", func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		}), forbidden},
		{"the node's network", pod("g", func(s *corev1.PodSpec) { s.HostNetwork = true }), forbidden},
		{"a port of the node", pod("h", func(s *corev1.PodSpec) {
			s.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80, HostPort: 80}}
		}), forbidden},
		{"the node's processes", pod("i", func(s *corev1.PodSpec) { s.HostPID = true }), forbidden},
		{"the node's memory", pod("j", func(s *corev1.PodSpec) { s.HostIPC = true }), forbidden},
		{"a sysctl", pod("k", func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}
		}), forbidden},
		{"no AppArmor", pod("m", context(func(c *corev1.SecurityContext) {
			c.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
		})), forbidden},
		{"a type of SELinux", pod("n", context(func(c *corev1.SecurityContext) { c.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"} })), forbidden},
		{"a kubelet that asks elsewhere", pod("p", func(s *corev1.PodSpec) {
			s.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "192.0.2.1", Port: intstr.FromInt32(80)}}}
		}), forbidden},
	})
}

// The PriorityClass of control planes is theirs: for pods that Kubernetes' controllers make of what Flux has installed.
func TestThePriorityOfControlPlanesIsTheirs(t *testing.T) {
	t.Parallel()
	const id, in = "priority", "vcluster-priority"
	reach(t, create(t, tenant(id)), "Ready")
	high := func(labels map[string]string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.PriorityClassName, pod.Labels = "cloudspace-control-plane", labels
		}
	}
	deployment := func(namespace, name string) *appsv1.Deployment {
		labels := map[string]string{"release": id}
		return &appsv1.Deployment{ObjectMeta: named(namespace, name), Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podIn(in, "a", high(labels)).Spec},
		}}
	}
	replicas := func(namespace, name string) *appsv1.ReplicaSet {
		of := deployment(namespace, name)
		return &appsv1.ReplicaSet{ObjectMeta: of.ObjectMeta, Spec: appsv1.ReplicaSetSpec{Selector: of.Spec.Selector, Template: of.Spec.Template}}
	}
	ours := map[string]string{"release": id}
	kube := func(name string) client.Client {
		return identity(t, "system:serviceaccount:kube-system:"+name, masters)
	}
	t.Run("an administrator, as Flux", func(t *testing.T) {
		try(t, admin, []attempt{
			{"a Deployment", made(deployment(in, "kept")), ""},
			{"a pod", made(podIn(in, "a", high(ours))), "made by Kubernetes' controllers alone"},
		})
	})
	t.Run("somebody who may make workloads", func(t *testing.T) {
		try(t, clerk(t, "clerk-of-workloads"), []attempt{
			{"a Deployment", made(deployment(in, "b")), noPriority},
			{"one elsewhere", made(deployment("default", "b")), noPriority},
			{"a ReplicaSet", made(replicas(in, "b")), noPriority},
			{"a Deployment made another", patched(deployment(in, "kept"), `{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"example.com/evil:1"}]}}}}`), noPriority},
			{"a Deployment as it is", patched(deployment(in, "kept"), `{"metadata":{"annotations":{"a":"b"}}}`), ""},
			{"a pod", made(podIn("default", "b", high(ours))), noPriority},
		})
	})
	t.Run("Kubernetes", func(t *testing.T) {
		try(t, kube("deployment-controller"), []attempt{{"a ReplicaSet", made(replicas(in, "kept")), ""}})
		try(t, kube("replicaset-controller"), []attempt{
			{"a pod of the control plane", made(podIn(in, "server", high(ours))), ""},
			{"a pod of something else", made(podIn(in, "other", high(map[string]string{"app": "vcluster"}))), noPriority},
			{"a pod elsewhere", made(podIn("default", "other", high(ours))), noPriority},
		})
		try(t, kube("statefulset-controller"), []attempt{{"a member of etcd", made(podIn(in, "etcd", high(ours))), ""}})
		try(t, kube("job-controller"), []attempt{{"a pod of a Job", made(podIn(in, "job", high(ours))), "made by Kubernetes' controllers alone"}})
	})
}
