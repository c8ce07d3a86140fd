// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// The least that each shipped size needs, which docs/sizes.md tells people.
func TestTheLeastThatAShippedSizeNeeds(t *testing.T) {
	platform, err := configv1alpha1.Load("../../config/manager/platform-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/sizes.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		size        string
		many        bool
		cpu, memory string
	}{
		"Small": {size: "Small", cpu: "1650m", memory: "2368Mi"}, "Medium": {size: "Medium", cpu: "2917m", memory: "4192Mi"},
		"Large":                        {size: "Large", cpu: "5417m", memory: "7808Mi"},
		"Small with highAvailability":  {size: "Small", many: true, cpu: "2484m", memory: "3648Mi"},
		"Medium with highAvailability": {size: "Medium", many: true, cpu: "4584m", memory: "6752Mi"},
		"Large with highAvailability":  {size: "Large", many: true, cpu: "8750m", memory: "12928Mi"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fits := func(resources v1alpha1.CloudSpaceResources) error {
				resources.Pods = 11
				return fits(resources, v1alpha1.ControlPlane{HighAvailability: tt.many}, platform.Sizes[tt.size], platform.LimitFactors)
			}
			least := v1alpha1.CloudSpaceResources{CPU: resource.MustParse(tt.cpu), Memory: resource.MustParse(tt.memory)}
			if err := fits(least); err != nil {
				t.Errorf("%s and %s are refused: %v", tt.cpu, tt.memory, err)
			}
			for _, less := range []v1alpha1.CloudSpaceResources{
				{CPU: lessBy(least.CPU, "1m"), Memory: least.Memory}, {CPU: least.CPU, Memory: lessBy(least.Memory, "1")},
			} {
				err := fits(less)
				if err == nil || !strings.Contains(err.Error(), "at least "+tt.cpu+" CPU and "+tt.memory+" memory") {
					t.Errorf("%s and %s: %v, want them refused with the minimum", less.CPU.String(), less.Memory.String(), err)
				}
			}
			if row := "| " + name + " | " + tt.cpu + " | " + tt.memory + " |"; !strings.Contains(string(page), row) {
				t.Errorf("docs/sizes.md does not have %q", row)
			}
		})
	}
}

// The example of docs/quotas.md is what the arithmetic gives.
func TestTheWorkedExample(t *testing.T) {
	platform, err := configv1alpha1.Load("../../config/manager/platform-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/quotas.md")
	if err != nil {
		t.Fatal(err)
	}
	size, of := platform.Sizes["Small"], membersOf(v1alpha1.ControlPlane{})
	all := split(forPods(testCloudSpace("default").Spec.Resources, platform.LimitFactors), controlPlaneShare(of, size))
	always := minus(fixedWorkloads(size), perPod(smallApp))
	for name, amounts := range map[string]corev1.ResourceList{
		"`cloudspace`": all.total, "etcd": perPod(size.Etcd), "`cloudspace-control-plane`": all.controlPlane, "`cloudspace-workload`": all.workloads,
		"CoreDNS and Flux": always, "left for the tenant's pods": minus(all.workloads, always),
	} {
		cpu, memory, pods := amounts[corev1.ResourceRequestsCPU], amounts[corev1.ResourceRequestsMemory], amounts[corev1.ResourcePods]
		limitCPU, limitMemory := amounts[corev1.ResourceLimitsCPU], amounts[corev1.ResourceLimitsMemory]
		row := fmt.Sprintf("| %s | %dm | %dMi | %dm | %dMi | %d |", name, cpu.MilliValue(), memory.Value()>>20, limitCPU.MilliValue(), limitMemory.Value()>>20, pods.Value())
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/quotas.md does not have %q", row)
		}
	}
}

func lessBy(quantity resource.Quantity, by string) resource.Quantity {
	quantity = quantity.DeepCopy()
	quantity.Sub(resource.MustParse(by))
	return quantity
}

// What is reckoned for Flux inside is what its chart asks for.
func TestFluxInsideIsWhatItsChartAsksFor(t *testing.T) {
	text, err := os.ReadFile("../../charts/cloudspace-flux/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	sum := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, controller := range []string{"sourceController", "kustomizeController", "helmController"} {
		part, err := yaml.Marshal(values[controller])
		if err != nil {
			t.Fatal(err)
		}
		var controller struct{ Resources corev1.ResourceRequirements }
		if err := yaml.Unmarshal(part, &controller); err != nil {
			t.Fatal(err)
		}
		add(sum.Requests, controller.Resources.Requests)
		add(sum.Limits, controller.Resources.Limits)
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := sum.Requests[name], sum.Limits[name]
		if request.Cmp(fluxInside.Requests[name]) != 0 || limit.Cmp(fluxInside.Limits[name]) != 0 {
			t.Errorf("the chart asks for %s of %s at most %s", request.String(), name, limit.String())
		}
	}
}

func add(sum, more corev1.ResourceList) {
	for name, quantity := range more {
		total := sum[name]
		total.Add(quantity)
		sum[name] = total
	}
}
