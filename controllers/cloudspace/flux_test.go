// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inside is a CloudSpace's API server with Flux in it, altered by a test. It serves single objects only: nothing may be listed,
// because the tenant decides how long a list is.
func inside(t *testing.T, alter func(name string, object any) any) []byte {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		var object any
		switch {
		case strings.HasPrefix(r.URL.Path, "/apis/apps/v1/namespaces/flux-system/deployments/"):
			deployment := runningAPIServer()
			deployment.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
			object = deployment
		case strings.HasPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"):
			object = &apiextensionsv1.CustomResourceDefinition{
				TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
				Status: apiextensionsv1.CustomResourceDefinitionStatus{Conditions: []apiextensionsv1.CustomResourceDefinitionCondition{
					{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
				}},
			}
		}
		if object = alter(name, object); object == nil {
			w.WriteHeader(http.StatusNotFound)
			object = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}))
	t.Cleanup(server.Close)
	return fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: %q}}]}`, server.URL)
}

// An API server inside that answers each request just in time keeps a worker no longer than one that does not answer at all.
func TestAllQuestionsTogetherHaveOneTimeout(t *testing.T) {
	slow := inside(t, func(_ string, object any) any {
		<-time.After(50 * time.Millisecond)
		return object
	})
	missing, err := InsideFlux{timeout: 300 * time.Millisecond}.Missing(t.Context(), slow)
	// The client's own rate limiter may be the first to notice, with an error of its own.
	if err == nil || missing != "" {
		t.Errorf("got %q and error %v, want it to end", missing, err)
	}
}

// What is missing for long is asked for less often, whoever keeps it from being there, until somebody asks for a retry.
func TestFluxInsideIsAskedEverLessOften(t *testing.T) {
	tests := map[string]struct {
		since time.Duration
		ready bool
		want  time.Duration
	}{
		"it was there before":                 {ready: true, since: time.Hour, want: time.Second},
		"just now":                            {want: time.Second},
		"for a minute":                        {since: time.Minute, want: time.Second},
		"for five minutes":                    {since: 5 * time.Minute, want: 5 * time.Second},
		"for half an hour":                    {since: 30 * time.Minute, want: 30 * time.Second},
		"for a day":                           {since: day, want: 30 * time.Second},
		"since what is not yet, by our clock": {since: -day, want: time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := condition("FluxReady", metav1.ConditionFalse, "WaitingForFlux", 1)
			c.LastTransitionTime = metav1.NewTime(noon.Add(-tt.since))
			if tt.ready {
				c.Status = metav1.ConditionTrue
			}
			if got := askAgain(&c, noon); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if got := askAgain(nil, noon); got != time.Second {
		t.Errorf("at first: got %v", got)
	}

	// The whole pass goes by it.
	c := newChaos(t)
	c.flux.missing = "helm-controller"
	c.live(upToActive)
	c.clock.SetTime(noon.Add(8 * time.Minute))
	result, err := c.r.Reconcile(t.Context(), c.object())
	if err != nil || result.RequeueAfter != 8*time.Second {
		t.Errorf("eight minutes later: got %v and error %v", result.RequeueAfter, err)
	}
}

func TestWhatIsMissingOfFluxInside(t *testing.T) {
	tests := map[string]struct {
		alter   func(name string, object any) any
		want    string
		wantErr string
	}{
		"nothing": {alter: func(_ string, object any) any { return object }},
		"a controller that is not there": {
			alter: func(name string, object any) any {
				if name == "kustomize-controller" {
					return nil
				}
				return object
			},
			want: "kustomize-controller",
		},
		"a controller that does not run": {
			alter: func(name string, object any) any {
				if d, ok := object.(*appsv1.Deployment); ok && name == "helm-controller" {
					d.Status.Conditions[0].Status = corev1.ConditionFalse
				}
				return object
			},
			want: "helm-controller",
		},
		"a kind that is not served": {
			alter: func(name string, object any) any {
				if name == "gitrepositories.source.toolkit.fluxcd.io" {
					return nil
				}
				return object
			},
			want: "the kind gitrepositories.source.toolkit.fluxcd.io",
		},
		"an answer larger than an object can be is not read": {
			alter: func(_ string, object any) any {
				if d, ok := object.(*appsv1.Deployment); ok {
					d.Annotations = map[string]string{"padding": strings.Repeat("x", largestAnswer)}
				}
				return object
			},
			wantErr: "too large",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := InsideFlux{}.Missing(t.Context(), inside(t, tt.alter))
			if got != tt.want || (err != nil) != (tt.wantErr != "") {
				t.Fatalf("got %q and error %v, want %q and %q", got, err, tt.want, tt.wantErr)
			}
			if err != nil && !strings.Contains(err.Error(), tt.wantErr) {
				t.Errorf("got error %v, want one with %q", err, tt.wantErr)
			}
		})
	}
}
