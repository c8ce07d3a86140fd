// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// DefaultSize must be among the sizes: CloudSpaces have it unless they ask for another.
const DefaultSize = "Small"

// Bounds of images.pullSecrets.
const (
	maxPullSecrets    = 8
	maxPullSecretName = 40
)

var (
	kubernetesVersion = regexp.MustCompile(`^v1\.(0|[1-9]\d*)\.(0|[1-9]\d*)$`)
	exactVersion      = regexp.MustCompile(`^v?\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	imageTag          = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// Validate tells everything that is wrong with a completed PlatformConfig.
func Validate(c *PlatformConfig) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, validateCharts(&c.Charts, field.NewPath("charts"))...)
	errs = append(errs, validateImages(&c.Images, field.NewPath("images"))...)
	if _, _, err := netutils.ParseCIDRSloppy(c.Host.ServiceCIDR); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("host", "serviceCIDR"), c.Host.ServiceCIDR, "must be an address range such as 10.96.0.0/16"))
	}
	errs = append(errs, validateKubernetes(c.Kubernetes, field.NewPath("kubernetes"))...)
	errs = append(errs, validateSizes(c.Sizes, field.NewPath("sizes"))...)
	errs = append(errs, validateEndpoint(c.Endpoint, field.NewPath("endpoint"))...)
	errs = append(errs, validateNetwork(&c.Network, field.NewPath("network"))...)
	errs = append(errs, validateFactor(c.LimitFactors.CPU, field.NewPath("limitFactors", "cpu"))...)
	errs = append(errs, validateFactor(c.LimitFactors.Memory, field.NewPath("limitFactors", "memory"))...)
	errs = append(errs, validatePodEphemeralStorage(c.PodEphemeralStorage, field.NewPath("podEphemeralStorage"))...)
	errs = append(errs, validateTenantQuota(c.TenantQuota.Hard, field.NewPath("tenantQuota", "hard"))...)
	errs = append(errs, validateCount(c.Rollout.MaxConcurrent, 1, field.NewPath("rollout", "maxConcurrent"))...)
	errs = append(errs, validateCount(c.Rollout.MaxFailed, 0, field.NewPath("rollout", "maxFailed"))...)
	errs = append(errs, validateDurations(c)...)
	return errs
}

// validateTenantQuota repeats the schema of TenantQuota: one that the API server refuses would leave every new Tenant without.
func validateTenantQuota(hard tenancyv1alpha1.QuotaAmounts, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		amount, most := hard[name], resource.MustParse("1Ei")
		switch name {
		case tenancyv1alpha1.QuotaCPU, tenancyv1alpha1.QuotaMemory, tenancyv1alpha1.QuotaStorage, tenancyv1alpha1.QuotaPods:
		case tenancyv1alpha1.QuotaCloudSpaces:
			most = resource.MustParse("500")
		default:
			errs = append(errs, field.NotSupported(path, name, []string{"cloudspaces", "cpu", "memory", "storage", "pods"}))
			continue
		}
		if amount.Sign() < 0 || amount.Cmp(most) > 0 {
			errs = append(errs, field.Invalid(path.Key(string(name)), amount.String(), "must be between 0 and "+most.String()))
		}
	}
	return errs
}

func validateCharts(c *Charts, path *field.Path) field.ErrorList {
	errs := validateChart(&c.VCluster, path.Child("vcluster"))
	if c.VCluster.Values != nil {
		errs = append(errs, field.Forbidden(path.Child("vcluster", "values"), "the values of the vCluster chart are the operator's"))
	}
	errs = append(errs, validateChart(&c.Flux, path.Child("flux"))...)
	if c.Advisor != nil {
		errs = append(errs, validateChart(c.Advisor, path.Child("advisor"))...)
	}
	return errs
}

func validateChart(c *Chart, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if !exactVersion.MatchString(c.Version) {
		errs = append(errs, field.Invalid(path.Child("version"), c.Version, "must be an exact version such as 0.36.1"))
	}
	if c.Values != nil && json.Unmarshal(c.Values.Raw, &map[string]any{}) != nil {
		errs = append(errs, field.Invalid(path.Child("values"), string(c.Values.Raw), "must be a map"))
	}
	errs = append(errs, validateSecretName(c.SecretName, path.Child("secretName"))...)
	errs = append(errs, validateSecretName(c.CertSecretName, path.Child("certSecretName"))...)
	u, err := url.Parse(c.Repository)
	if err != nil || u.Host == "" {
		return append(errs, field.Invalid(path.Child("repository"), c.Repository, "must be an oci:// or https:// URL"))
	}
	if !sets.New("oci", "https", "http").Has(u.Scheme) {
		errs = append(errs, field.NotSupported(path.Child("repository"), u.Scheme, []string{"oci", "https", "http"}))
	}
	if c.Insecure && u.Scheme != "oci" {
		errs = append(errs, field.Forbidden(path.Child("insecure"), "only an oci:// repository can be insecure"))
	}
	return errs
}

func validateSecretName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	var errs field.ErrorList
	for _, message := range apivalidation.NameIsDNSSubdomain(name, false) {
		errs = append(errs, field.Invalid(path, name, message))
	}
	return errs
}

// validateImages bounds the names of pull secrets so that those of their copies are never names that a syncer gives: these have
// "-x-" in them, or are as long as a label can be.
func validateImages(images *Images, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	secrets := path.Child("pullSecrets")
	if len(images.PullSecrets) > maxPullSecrets {
		errs = append(errs, field.TooMany(secrets, len(images.PullSecrets), maxPullSecrets))
	}
	seen := sets.New[string]()
	for i, name := range images.PullSecrets {
		if len(validation.IsDNS1123Label(name)) > 0 || len(name) > maxPullSecretName || strings.Contains(name, "-x-") {
			errs = append(errs, field.Invalid(secrets.Index(i), name,
				"must be lower case letters, digits and dashes, at most 40 characters, without -x-"))
		}
		if seen.Has(name) {
			errs = append(errs, field.Duplicate(secrets.Index(i), name))
		}
		seen.Insert(name)
	}
	if images.WorkloadsUsePullSecrets && len(images.PullSecrets) == 0 {
		errs = append(errs, field.Forbidden(path.Child("workloadsUsePullSecrets"), "there are no pullSecrets"))
	}
	return errs
}

func validateKubernetes(versions []KubernetesVersion, path *field.Path) field.ErrorList {
	if len(versions) == 0 {
		return field.ErrorList{field.Required(path, "at least one version; the first one is the default")}
	}
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, v := range versions {
		if !kubernetesVersion.MatchString(v.Version) {
			errs = append(errs, field.Invalid(path.Index(i).Child("version"), v.Version, "must look like v1.36.0"))
		}
		if seen.Has(v.Version) {
			errs = append(errs, field.Duplicate(path.Index(i).Child("version"), v.Version))
		}
		seen.Insert(v.Version)
		errs = append(errs, validateTag(v.Etcd, path.Index(i).Child("etcd"))...)
		errs = append(errs, validateTag(v.CoreDNS, path.Index(i).Child("coreDNS"))...)
	}
	return errs
}

func validateTag(tag string, path *field.Path) field.ErrorList {
	if imageTag.MatchString(tag) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, tag, "must be an image tag")}
}

func validateSizes(sizes map[string]Size, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, ok := sizes[DefaultSize]; !ok {
		errs = append(errs, field.Required(path.Key(DefaultSize), "it is the default size"))
	}
	known := sets.New("Small", "Medium", "Large")
	for _, name := range sets.List(sets.KeySet(sizes)) {
		if !known.Has(name) {
			errs = append(errs, field.NotSupported(path, name, sets.List(known)))
		}
		size := sizes[name]
		errs = append(errs, validateResources(size.ControlPlane, path.Key(name).Child("controlPlane"))...)
		errs = append(errs, validateResources(size.Etcd, path.Key(name).Child("etcd"))...)
		errs = append(errs, validateResources(size.CoreDNS, path.Key(name).Child("coreDNS"))...)
	}
	return errs
}

// validateResources wants requests and limits of CPU and memory: a host namespace has a quota on all four, so a container
// without them is refused by Kubernetes.
func validateResources(r corev1.ResourceRequirements, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, limit := r.Requests[name], r.Limits[name]
		if request.Sign() <= 0 {
			errs = append(errs, field.Required(path.Child("requests").Key(string(name)), "must be more than zero"))
		}
		if limit.Cmp(request) < 0 {
			errs = append(errs, field.Invalid(path.Child("limits").Key(string(name)), limit.String(), "must not be less than the request"))
		}
	}
	return errs
}

// leastPodEphemeralStorage is what Flux inside a CloudSpace may need.
var leastPodEphemeralStorage = resource.MustParse("1Gi")

func validatePodEphemeralStorage(storage resource.Quantity, path *field.Path) field.ErrorList {
	if storage.Cmp(leastPodEphemeralStorage) >= 0 && storage.CmpInt64(1<<50) <= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, storage.String(), "must be between 1Gi and 1Pi")}
}

func validateFactor(factor int64, path *field.Path) field.ErrorList {
	if factor >= 1 && factor <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, factor, "must be between 1 and 100")}
}

func validateCount(count, least int, path *field.Path) field.ErrorList {
	if count >= least && count <= 1000 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, count, fmt.Sprintf("must be between %d and 1000", least))}
}

func validateDurations(c *PlatformConfig) field.ErrorList {
	deadlines, backoff, helm := field.NewPath("deadlines"), field.NewPath("backoff"), field.NewPath("helm")
	var errs field.ErrorList
	for _, d := range []struct {
		path  *field.Path
		value metav1.Duration
	}{
		{deadlines.Child("namespace"), c.Deadlines.Namespace},
		{deadlines.Child("controlPlane"), c.Deadlines.ControlPlane},
		{deadlines.Child("kubeconfig"), c.Deadlines.Kubeconfig},
		{deadlines.Child("flux"), c.Deadlines.Flux},
		{deadlines.Child("innerRelease"), c.Deadlines.InnerRelease},
		{deadlines.Child("release"), c.Deadlines.Release},
		{backoff.Child("base"), c.Backoff.Base},
		{backoff.Child("max"), c.Backoff.Max},
		{helm.Child("interval"), c.Helm.Interval},
		{helm.Child("timeout"), c.Helm.Timeout},
	} {
		if d.value.Duration < 100*time.Millisecond || d.value.Duration > 24*time.Hour {
			errs = append(errs, field.Invalid(d.path, d.value.Duration.String(), "must be between 100ms and 24h"))
		}
	}
	if c.Backoff.Max.Duration < c.Backoff.Base.Duration {
		errs = append(errs, field.Invalid(backoff.Child("max"), c.Backoff.Max.Duration.String(), "must not be less than base"))
	}
	return errs
}
