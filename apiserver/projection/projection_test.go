// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/yaml"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	viewv1alpha1 "github.com/tantilium/cloud-runner/apis/view/v1alpha1"
)

func read(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(text, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestWhatIsShown(t *testing.T) {
	t.Parallel()
	for kind, show := range map[string]func(*unstructured.Unstructured){"cloudspace": CloudSpace, "account": Account} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			o := read(t, kind+".stored.yaml")
			show(o)
			if diff := cmp.Diff(read(t, kind+".shown.yaml").Object, o.Object); diff != "" {
				t.Errorf("what is shown (-want +got):\n%s", diff)
			}
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, hidden := range []string{"vcluster-", "canary", "kubeopera-system", "finalizer"} {
				if strings.Contains(string(text), hidden) {
					t.Errorf("%s is shown: %s", hidden, text)
				}
			}
		})
	}
}

func TestWhatIsStored(t *testing.T) {
	t.Parallel()
	stored := read(t, "cloudspace.stored.yaml")
	o := stored.DeepCopy()
	CloudSpace(o)
	StoredCloudSpace(o, stored)
	delete(stored.Object, "status")
	stored.SetManagedFields(nil)
	if diff := cmp.Diff(stored.Object, o.Object); diff != "" {
		t.Errorf("what was shown is stored otherwise (-want +got):\n%s", diff)
	}
}

// A selector of states selects the same objects as the selector of phases that is made of it.
func TestSelectPhase(t *testing.T) {
	t.Parallel()
	all := []tenancyv1alpha1.CloudSpacePhase{"", "Pending", "Provisioning", "InstallingFlux", "Active", "Failed", "Suspended", "Deleting"}
	for _, text := range []string{
		"status.state=provisioning", "status.state=active", "status.state!=active", "status.state!=deleting,status.state!=failed", "status.state=deleting",
		"metadata.name=a", "metadata.name!=a,status.state=active",
	} {
		states := fields.ParseSelectorOrDie(text)
		selector, err := SelectPhase(states)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for _, phase := range all {
			stored := fields.Set{"metadata.name": "a", "status.phase": string(phase)}
			shown := fields.Set{"metadata.name": "a", "status.state": string(stateOf(string(phase)))}
			if selector.Matches(stored) != states.Matches(shown) {
				t.Errorf("%s: %s is selected otherwise", text, phase)
			}
		}
	}
	for _, text := range []string{"status.state=Active", "status.state!=provisioning", "status.state="} {
		if selector, err := SelectPhase(fields.ParseSelectorOrDie(text)); err == nil {
			t.Errorf("%s becomes %s", text, selector)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	resource, kind := viewv1alpha1.Resource("cloudspaces"), viewv1alpha1.SchemeGroupVersion.WithKind("CloudSpace")
	stored := tenancyv1alpha1.Resource("cloudspaces")
	quota := apierrors.NewForbidden(stored, "a", errString("exceeded quota: cloudspace, requested: count/cloudspaces.tenancy.kubeopera.io=1"))
	for name, tt := range map[string]struct {
		err  error
		want string
		code int32
	}{
		"not found":      {apierrors.NewNotFound(stored, "a"), `cloudspaces.view.kubeopera.io "a" not found`, 404},
		"already there":  {apierrors.NewAlreadyExists(stored, "a"), `cloudspaces.view.kubeopera.io "a" already exists`, 409},
		"a conflict":     {apierrors.NewConflict(stored, "a", errString("newer")), `Operation cannot be fulfilled on cloudspaces.view.kubeopera.io "a": newer`, 409},
		"an invalid one": {apierrors.NewInvalid(tenancyv1alpha1.SchemeGroupVersion.WithKind("CloudSpace").GroupKind(), "a", nil), `CloudSpace.view.kubeopera.io "a" is invalid`, 422},
		"a quota's own words stay true": {
			quota, `cloudspaces.view.kubeopera.io "a" is forbidden: exceeded quota: cloudspace, requested: count/cloudspaces.tenancy.kubeopera.io=1`, 403,
		},
		"the server's own rights are nobody's business": {
			apierrors.NewForbidden(stored, "a", errString(`User "system:serviceaccount:kubeopera-core:kubeopera-api" cannot get resource`)),
			"Internal error occurred: the platform may not do this for you", 500,
		},
		"nor is its network": {errString("dial tcp 10.0.0.1:443: refused"), "Internal error occurred: kube-apiserver could not be asked", 500},
		"an answer of something else": {
			apierrors.NewGenericServerResponse(503, "get", stored, "a", "<html>the proxy at 10.0.0.1</html>", 0, true),
			`the server is currently unable to handle the request (get cloudspaces.view.kubeopera.io a)`, 503,
		},
		"where it is stored": {
			apierrors.NewConflict(stored, "a", errString("StorageError: invalid object, Code: 4, Key: /registry/tenancy.kubeopera.io/cloudspaces/b/a, "+
				"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed")),
			`Operation cannot be fulfilled on cloudspaces.view.kubeopera.io "a": Precondition failed`, 409,
		},
		"another manager": {
			apierrors.NewApplyConflict([]metav1.StatusCause{{Message: `conflict with "a" using tenancy.kubeopera.io/v1alpha1`}},
				`Apply failed with 1 conflict: conflict with "a" using tenancy.kubeopera.io/v1alpha1: .spec`),
			`Apply failed with 1 conflict: conflict with "a" using view.kubeopera.io/v1alpha1: .spec`, 409,
		},
		"too many requests": {apierrors.NewTooManyRequests("wait", 3), "wait", 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Error(tt.err, resource, kind, "a")
			status, _ := got.(apierrors.APIStatus)
			if got.Error() != tt.want || status.Status().Code != tt.code {
				t.Errorf("it is %d %q", status.Status().Code, got)
			}
			if details := status.Status().Details; details != nil && details.Group == tenancyv1alpha1.SchemeGroupVersion.Group {
				t.Errorf("details are of %+v", details)
			}
			if details := status.Status().Details; details != nil {
				for _, cause := range details.Causes {
					if strings.Contains(cause.Message, "tenancy") || strings.Contains(cause.Message, "10.0.0.1") {
						t.Errorf("a cause is %+v", cause)
					}
				}
			}
		})
	}
	if retry, found := apierrors.SuggestsClientDelay(Error(apierrors.NewTooManyRequests("wait", 3), resource, kind, "a")); !found || retry != 3 {
		t.Error("when to try again is lost")
	}
}

type errString string

func (e errString) Error() string { return string(e) }

func TestRefused(t *testing.T) {
	t.Parallel()
	for text, refused := range map[string]bool{
		`{}`:                                     false,
		`{"metadata":{"name":"a"}}`:              false,
		`{"metadata":{"finalizers":[]}}`:         false,
		`{"metadata":{"finalizers":["a"]}}`:      true,
		`{"metadata":{"ownerReferences":[{}]}}`:  true,
		`{"metadata":{"annotations":{"a":"b"}}}`: false,
		`{"metadata":{"annotations":{"tenancy.kubeopera.io/template":"b"}}}`:        true,
		`{"metadata":{"annotations":{"tenancy.kubeopera.io/retry-requested":"b"}}}`: false,
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if got := Refused(o) != ""; got != refused {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestMalformed(t *testing.T) {
	t.Parallel()
	for text, malformed := range map[string]bool{
		`{}`:                         false,
		`{"metadata":{"name":"a"}}`:  false,
		`{"metadata":null}`:          true,
		`{"metadata":[]}`:            true,
		`{"metadata":{"name":1}}`:    true,
		`{"metadata":{"labels":[]}}`: true,
		`{"metadata":{"finalizers":"a","annotations":{"a":"b"}}}`:                    true,
		`{"metadata":{"annotations":{"a":1,"tenancy.kubeopera.io/template":"b"}}}`:   true,
		`{"metadata":{"annotations":null,"creationTimestamp":null,"finalizers":[]}}`: false,
		`{"metadata":{"generation":2,"managedFields":[{"fieldsV1":{"f:spec":{}}}]}}`: false,
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		if err := Malformed(o); (err != nil) != malformed {
			t.Errorf("%s: %v", text, err)
		}
	}
}
