// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// pageSize is how many objects are asked for at a time.
const pageSize = 500

var (
	tenants     = v1alpha1.SchemeGroupVersion.WithResource("tenants")
	cloudSpaces = v1alpha1.SchemeGroupVersion.WithResource("cloudspaces")
	quotas      = v1alpha1.SchemeGroupVersion.WithResource("tenantquotas")

	helmReleases     = schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}
	helmCharts       = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "helmcharts"}
	helmRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "helmrepositories"}

	nodes          = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods           = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events         = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	secrets        = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	configMaps     = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	storageClasses = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	admission      = schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
)

// ofNamespace are kinds that are collected from each namespace that is looked into.
var ofNamespace = []schema.GroupVersionResource{
	pods, events, secrets,
	{Version: "v1", Resource: "resourcequotas"},
	{Version: "v1", Resource: "limitranges"},
	{Version: "v1", Resource: "persistentvolumeclaims"},
	{Version: "v1", Resource: "services"},
	{Version: "v1", Resource: "serviceaccounts"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"},
	{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
}

// platformObjects are those that make up tenants, and what of the cluster they rely on.
func (c *collector) platformObjects(ctx context.Context) error {
	byName, byLabel := metav1.ListOptions{}, metav1.ListOptions{}
	tenantNamespace := ""
	if c.Tenant != "" {
		byName.FieldSelector = "metadata.name=" + c.Tenant
		byLabel.LabelSelector = v1alpha1.LabelTenant + "=" + c.Tenant
		tenantNamespace = names.TenantNamespace(c.Tenant)
	}
	all := metav1.ListOptions{}
	return errors.Join(
		c.list(ctx, "objects", tenants, "", byName),
		c.list(ctx, "objects", quotas, "", byName),
		c.list(ctx, "objects", cloudSpaces, tenantNamespace, all),
		c.list(ctx, "objects", helmReleases, names.SystemNamespace, byLabel),
		c.list(ctx, "objects", helmCharts, names.SystemNamespace, all),
		c.list(ctx, "objects", helmRepositories, names.SystemNamespace, all),
		c.list(ctx, "objects", nodes, "", all),
		c.list(ctx, "objects", storageClasses, "", all),
		c.list(ctx, "objects", admission.WithResource("validatingadmissionpolicies"), "", all),
		c.list(ctx, "objects", admission.WithResource("mutatingadmissionpolicies"), "", all),
	)
}

// namespace collects what is in a namespace, into the folder that is named after it.
func (c *collector) namespace(ctx context.Context, namespace string) error {
	var errs []error
	for _, resource := range ofNamespace {
		errs = append(errs, c.list(ctx, "namespaces/"+namespace, resource, namespace, metav1.ListOptions{}))
	}
	return errors.Join(errs...)
}

// list writes all objects of a kind to a file that is named after it.
func (c *collector) list(ctx context.Context, folder string, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions) error {
	var text bytes.Buffer
	err := c.each(ctx, resource, namespace, o, func(object *unstructured.Unstructured) error {
		document, err := yaml.Marshal(scrub(object).Object)
		text.WriteString("---\n")
		text.WriteString(redact(string(document)))
		return err
	})
	return errors.Join(err, c.archive.add(folder+"/"+resource.Resource+".yaml", text.Bytes()))
}

// each visits objects page by page. It stops where a file would be full.
func (c *collector) each(ctx context.Context, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions, visit func(*unstructured.Unstructured) error) error {
	o.Limit = pageSize
	for {
		page, err := c.dynamic.Resource(resource).Namespace(namespace).List(ctx, o)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("%s: not served", resource.GroupResource())
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", resource.GroupResource(), err)
		}
		for i := range page.Items {
			if err := visit(&page.Items[i]); err != nil {
				return err
			}
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return nil
		}
	}
}
