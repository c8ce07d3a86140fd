// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"encoding/base64"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tantilium/cloud-runner/internal/names"
)

// secretKey matches names of values that are secret by what they are called.
var secretKey = regexp.MustCompile(`(?i)(pass|token|secret|cred|key|auth)`)

// scrub takes out of an object what must not leave the cluster, and what is of no use.
func scrub(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetManagedFields(nil)
	annotations := object.GetAnnotations()
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	object.SetAnnotations(annotations)
	switch object.GetKind() {
	case "Secret":
		return keysOnly(object)
	case "Pod":
		// Annotations of a synced pod are what the tenant wrote.
		object.SetAnnotations(nil)
		scrubPod(object.Object, "spec")
	case "Deployment", "StatefulSet":
		unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations")
		scrubPod(object.Object, "spec", "template", "spec")
	case "HelmRelease":
		if values, ok, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "values"); ok {
			scrubValues(values)
		}
	}
	return object
}

// keysOnly leaves of a Secret who it is, what keys it has, and how many bytes are under each.
func keysOnly(object *unstructured.Unstructured) *unstructured.Unstructured {
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	sizes := map[string]any{}
	for key, value := range data {
		text, _ := value.(string)
		sizes[key] = int64(base64.StdEncoding.DecodedLen(len(text)))
	}
	left := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": object.Object["type"], "sizes": sizes,
	}}
	left.SetName(object.GetName())
	left.SetNamespace(object.GetNamespace())
	left.SetLabels(object.GetLabels())
	left.SetUID(object.GetUID())
	left.SetCreationTimestamp(object.GetCreationTimestamp())
	left.SetDeletionTimestamp(object.GetDeletionTimestamp())
	left.SetFinalizers(object.GetFinalizers())
	return left
}

// scrubPod takes out the values of environment variables, and, of what tenants run, the command lines.
func scrubPod(object map[string]any, path ...string) {
	spec, ok, _ := unstructured.NestedFieldNoCopy(object, path...)
	pod, isMap := spec.(map[string]any)
	if !ok || !isMap {
		return
	}
	ofTenant := pod["priorityClassName"] == names.WorkloadPriorityClass
	for _, kind := range []string{"initContainers", "containers", "ephemeralContainers"} {
		containers, _ := pod[kind].([]any)
		for _, c := range containers {
			container, ok := c.(map[string]any)
			if !ok {
				continue
			}
			scrubEnvironment(container)
			if ofTenant {
				scrubCommands(container)
			}
		}
	}
}

func scrubEnvironment(container map[string]any) {
	variables, _ := container["env"].([]any)
	for _, v := range variables {
		if variable, ok := v.(map[string]any); ok && variable["value"] != nil {
			variable["value"] = redacted
		}
	}
}

// scrubCommands takes out everything in a container that may carry a command line.
func scrubCommands(container map[string]any) {
	for _, field := range []string{"command", "args", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
		if container[field] != nil {
			container[field] = redacted
		}
	}
}

// scrubValues takes out of Helm values what is called like a secret.
func scrubValues(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, child := range v {
			if text, ok := child.(string); ok && text != "" && secretKey.MatchString(key) {
				v[key] = redacted
				continue
			}
			scrubValues(child)
		}
	case []any:
		for _, child := range v {
			scrubValues(child)
		}
	}
}
