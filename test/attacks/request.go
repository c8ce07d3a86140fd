// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package attacks

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// group is where the view is served.
const group = "/apis/view.kubeopera.io/v1alpha1"

// target is what is asked for at a place.
type target struct{ namespace, name string }

func targetOf(asked served, at string) target {
	if asked.resource == "accounts" {
		return target{name: map[string]string{placeOwn: Own, placeForeign: Foreign, placeAbsent: "attack-none", placeMalformed: "Bad_Name"}[at]}
	}
	switch {
	case at == placeOwn:
		return target{namespaceOf(Own), ownCloudSpace}
	case at == placeForeign:
		return target{namespaceOf(Foreign), foreignCloudSpace}
	case at == placeEverywhere:
		return target{}
	case at == placeAbsent && !asked.named():
		return target{namespaceOf("attack-none"), ownCloudSpace}
	case at == placeAbsent:
		return target{namespaceOf(Own), "none"}
	case !asked.named() && asked.verb != "create":
		return target{"Tenant_Bad", ""}
	default:
		return target{namespaceOf(Own), "Bad_Name"}
	}
}

// named tells that the path has the name of one object.
func (s served) named() bool {
	return !slices.Contains([]string{"list", "watch", "deletecollection", "create"}, s.verb)
}

func (to target) path(asked served) string {
	path := group
	if to.namespace != "" {
		path += "/namespaces/" + to.namespace
	}
	path += "/" + asked.resource
	if asked.named() {
		path += "/" + to.name
	}
	return path
}

// object is a CloudSpace of the view to send.
func (to target) object(version string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"view.kubeopera.io/v1alpha1","kind":"CloudSpace","metadata":{"name":%q,"namespace":%q,"resourceVersion":%q},"spec":{}}`,
		to.name, to.namespace, version)
}

// attacker sends requests as somebody.
type attacker struct {
	admin, client *rest.RESTClient
	who           string
	caller        Caller
	// unknown tells that kube-apiserver refuses what they show.
	unknown bool
}

func newAttacker(t *testing.T, admin *rest.Config, who string, become Become) attacker {
	t.Helper()
	caller := Callers()[who]
	as, known := become(t, caller)
	return attacker{clientFor(t, admin), clientFor(t, as), who, caller, !known}
}

func clientFor(t *testing.T, as *rest.Config) *rest.RESTClient {
	t.Helper()
	config := rest.CopyConfig(as)
	config.QPS, config.UserAgent, config.NegotiatedSerializer = -1, "attacks-test/1", scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// asks does one thing, as a dry run, and gives the answer's code and text.
func (a attacker) asks(t *testing.T, asked served, to target) (code int, text string) {
	t.Helper()
	request := a.client.Verb(methods[asked.verb]).AbsPath(to.path(asked)).SetHeader("Content-Type", "application/json")
	switch asked.verb {
	case "get", "list":
		return answer(t, request)
	case "watch":
		return answer(t, request.Param("watch", "true").Param("timeoutSeconds", "1"))
	case "create":
		request.Body(to.object(""))
	case "update":
		request.Body(to.object(a.versionOf(t, to)))
	case "patch":
		request.SetHeader("Content-Type", "application/merge-patch+json").Body([]byte(`{"metadata":{"labels":{"attack":"1"}}}`))
	}
	return answer(t, request.Param("dryRun", "All"))
}

// versionOf is the version of a stored CloudSpace, or one that there is not.
func (a attacker) versionOf(t *testing.T, of target) string {
	t.Helper()
	code, text := answer(t, a.admin.Get().AbsPath("/apis/tenancy.kubeopera.io/v1alpha1/namespaces", of.namespace, "cloudspaces", of.name))
	var stored metav1.PartialObjectMetadata
	if code != http.StatusOK || json.Unmarshal([]byte(text), &stored) != nil {
		return "1"
	}
	return stored.ResourceVersion
}

// methods of the verbs that can be asked for.
var methods = map[string]string{
	"get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut,
	"patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete,
}

// answer gives what a request is answered, whatever that is.
func answer(t *testing.T, request *rest.Request) (code int, text string) {
	t.Helper()
	result := request.Do(t.Context())
	body, err := result.Raw()
	// The code of an answer that is no object of an API is in the error alone.
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return int(status.Status().Code), string(body)
	}
	if err != nil {
		t.Fatal(err)
	}
	result.StatusCode(&code)
	return code, string(body)
}
