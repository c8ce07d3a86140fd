// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tantilium/cloud-runner/internal/names"
)

// fluxDeployments and fluxCRDs are what must run and be served inside a CloudSpace.
var (
	fluxDeployments = []string{"source-controller", "kustomize-controller", "helm-controller"}
	fluxCRDs        = []string{
		"buckets.source.toolkit.fluxcd.io",
		"externalartifacts.source.toolkit.fluxcd.io",
		"gitrepositories.source.toolkit.fluxcd.io",
		"helmcharts.source.toolkit.fluxcd.io",
		"helmrepositories.source.toolkit.fluxcd.io",
		"ocirepositories.source.toolkit.fluxcd.io",
		"kustomizations.kustomize.toolkit.fluxcd.io",
		"helmreleases.helm.toolkit.fluxcd.io",
	}
)

// How often Flux inside a CloudSpace is asked while it is not ready: nothing inside is watched. Who never lets it run is not asked
// every second for ever.
const (
	insideRetry  = time.Second
	insideSlowly = 30 * time.Second
)

// insideTimeout bounds all calls to a CloudSpace's API server of one pass together: one that hangs must not hold a worker.
const insideTimeout = 10 * time.Second

// askAgain is when to ask the next time, given since when Flux is waited for: after a second for the first minute, and then after a
// sixtieth of that time.
func askAgain(waiting *metav1.Condition, now time.Time) time.Duration {
	if waiting == nil || waiting.Status != metav1.ConditionFalse {
		return insideRetry
	}
	return min(max(insideRetry, now.Sub(waiting.LastTransitionTime.Time)/60), insideSlowly)
}

// FluxProber looks at Flux inside a CloudSpace.
type FluxProber interface {
	// Missing names the first part of Flux that is not there or not available; empty when all is.
	Missing(ctx context.Context, kubeconfig []byte) (string, error)
}

// InsideFlux asks the CloudSpace's own API server. Its zero value is ready for use.
type InsideFlux struct {
	// timeout is insideTimeout when zero.
	timeout time.Duration
}

// Missing looks at the Deployments of Flux first: they come last, so that there is one call for each time too early. It asks for each
// by its name, and reads no more than an object can have: a tenant decides what is in there, and how much of it.
func (f InsideFlux) Missing(ctx context.Context, kubeconfig []byte) (string, error) {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(f.timeout, insideTimeout))
	defer cancel()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return bounded{next} })
	workloads, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", err
	}
	kinds, err := apiextensions.NewForConfig(config)
	if err != nil {
		return "", err
	}
	if missing, err := missingDeployment(ctx, workloads); missing != "" || err != nil {
		return missing, err
	}
	return missingCRD(ctx, kinds)
}

// largestAnswer is more than the largest object that etcd takes, in bytes.
const largestAnswer = 4 << 20

// bounded cuts answers off that are larger than an object can be.
type bounded struct{ next http.RoundTripper }

// RoundTrip passes a request on.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, largestAnswer)
	}
	return response, err
}

func missingDeployment(ctx context.Context, client kubernetes.Interface) (string, error) {
	for _, name := range fluxDeployments {
		deployment, err := client.AppsV1().Deployments(names.FluxNamespace).Get(ctx, name, metav1.GetOptions{})
		if absent := apierrors.IsNotFound(err); absent || (err == nil && !available(deployment)) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

func missingCRD(ctx context.Context, client apiextensions.Interface) (string, error) {
	for _, name := range fluxCRDs {
		crd, err := client.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
		if absent := apierrors.IsNotFound(err); absent || (err == nil && !established(crd)) {
			return "the kind " + name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// fluxProofs remembers, for each CloudSpace, for which release and kubeconfig Flux was last found to run. It is memory only:
// after a restart each CloudSpace is asked once.
type fluxProofs struct{ byName sync.Map }

func (p *fluxProofs) holds(cloudSpace types.NamespacedName, proof string) bool {
	held, ok := p.byName.Load(cloudSpace)
	return ok && held == proof
}

func (p *fluxProofs) keep(cloudSpace types.NamespacedName, proof string) {
	p.byName.Store(cloudSpace, proof)
}

func (p *fluxProofs) forget(cloudSpace types.NamespacedName) { p.byName.Delete(cloudSpace) }

// fluxProof identifies an installed release and the kubeconfig it is reached with.
func fluxProof(release *helmv2.HelmRelease, c *credentials) string {
	digest := ""
	if latest := latestRelease(release); latest != nil {
		digest = latest.Digest
	}
	sum := sha256.Sum256(c.internal)
	return fmt.Sprintf("%s/%d/%s/%s", release.UID, release.Generation, digest, hex.EncodeToString(sum[:]))
}
