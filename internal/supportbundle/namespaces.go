// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// How many CloudSpaces are looked into when no tenant is named: those that are not well, and a few others to compare with.
const (
	maxUnwell = 100
	maxWell   = 5
)

// systemNamespace is where the operator is.
func (c *collector) systemNamespace(ctx context.Context) error {
	return errors.Join(
		c.namespace(ctx, names.SystemNamespace),
		c.list(ctx, "namespaces/"+names.SystemNamespace, configMaps, names.SystemNamespace, metav1.ListOptions{}),
		c.logs(ctx, names.SystemNamespace, metav1.ListOptions{}),
	)
}

// flux is the one on the host, wherever it was installed; those in CloudSpaces are pods of tenants.
func (c *collector) flux(ctx context.Context) error {
	o := metav1.ListOptions{LabelSelector: "app in (source-controller,helm-controller)"}
	found := map[string]bool{}
	err := c.each(ctx, pods, "", o, func(pod *unstructured.Unstructured) error {
		if namespace := pod.GetNamespace(); !strings.HasPrefix(namespace, "vcluster-") && namespace != names.SystemNamespace {
			found[namespace] = true
		}
		return nil
	})
	errs := []error{err}
	for namespace := range found {
		errs = append(errs,
			c.list(ctx, "namespaces/"+namespace, pods, namespace, o),
			c.list(ctx, "namespaces/"+namespace, events, namespace, metav1.ListOptions{}),
			c.logs(ctx, namespace, o))
	}
	return errors.Join(errs...)
}

// cloudSpaces looks into the host namespaces, and into the tenants' own.
func (c *collector) cloudSpaces(ctx context.Context) error {
	chosen, err := c.choose(ctx)
	errs := []error{err}
	seen := map[string]bool{}
	for i, object := range chosen {
		id, _ := names.TenantID(object.Namespace)
		n, err := names.ForCloudSpace(id, object.Name)
		if err != nil {
			errs = append(errs, fmt.Errorf("cloudspace %s/%s: %w", object.Namespace, object.Name, err))
			continue
		}
		if !seen[object.Namespace] {
			seen[object.Namespace] = true
			errs = append(errs, c.list(ctx, "namespaces/"+object.Namespace, events, object.Namespace, metav1.ListOptions{}))
		}
		errs = append(errs, c.namespace(ctx, n.HostNamespace()), c.controlPlaneLogs(ctx, n.HostNamespace()))
		_, _ = fmt.Fprintf(c.Progress, "  %d of %d: %s/%s\n", i+1, len(chosen), object.Namespace, object.Name)
	}
	return errors.Join(errs...)
}

// choose picks the CloudSpaces to look into.
func (c *collector) choose(ctx context.Context) ([]v1alpha1.CloudSpace, error) {
	namespace := ""
	if c.Tenant != "" {
		namespace = names.TenantNamespace(c.Tenant)
	}
	var unwell, well []v1alpha1.CloudSpace
	err := c.each(ctx, cloudSpaces, namespace, metav1.ListOptions{}, func(object *unstructured.Unstructured) error {
		var cloudSpace v1alpha1.CloudSpace
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &cloudSpace); err != nil {
			return err
		}
		if isWell(&cloudSpace) {
			well = append(well, cloudSpace)
		} else {
			unwell = append(unwell, cloudSpace)
		}
		return nil
	})
	if c.Tenant == "" {
		if len(unwell) > maxUnwell {
			err = errors.Join(err, fmt.Errorf("%d CloudSpaces are not well; looked into the first %d: --tenant chooses", len(unwell), maxUnwell))
		}
		unwell, well = unwell[:min(len(unwell), maxUnwell)], well[:min(len(well), maxWell)]
	}
	return slices.Concat(unwell, well), err
}

func isWell(object *v1alpha1.CloudSpace) bool {
	return object.DeletionTimestamp.IsZero() && slices.ContainsFunc(object.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == v1alpha1.ConditionReady && c.Status == metav1.ConditionTrue
	})
}
