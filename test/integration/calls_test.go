// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// call is one request to the API server.
type call struct {
	verb, resource, namespace, name string
}

// about tells whether a call is about a tenant's objects: in a namespace of its, or on an object named after it.
func (c call) about(tenant string) bool {
	return strings.Contains(c.namespace, tenant) || strings.Contains(c.name, tenant)
}

// standing tells whether a call is not made for one thing that happens: a watch, an event for people, or a look at a control plane that
// takes long to start, which depends on how busy the machine is.
func (c call) standing() bool {
	looks := c.verb == "list" && (c.resource == "pods" || c.resource == "secrets")
	return c.verb == "watch" || c.resource == "events" || looks
}

// callRecorder notes the requests of a client.
type callRecorder struct {
	mu   sync.Mutex
	made []call
}

var requestInfo = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

func (r *callRecorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(sent *http.Request) (*http.Response, error) {
		if _, err := r.note(sent); err != nil {
			return nil, err
		}
		return next.RoundTrip(sent)
	})
}

// note is called when a request is sent: what it does can be seen before its answer is here.
func (r *callRecorder) note(sent *http.Request) (call, error) {
	made, err := describe(sent)
	if err != nil {
		return call{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made = append(r.made, made)
	return made, nil
}

// since gives the calls that were made after a mark.
func (r *callRecorder) since(mark int) []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]call{}, r.made[mark:]...)
}

func (r *callRecorder) mark() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.made)
}

func describe(sent *http.Request) (call, error) {
	info, err := requestInfo.NewRequestInfo(sent)
	if err != nil {
		return call{}, err
	}
	made := call{verb: info.Verb, resource: info.Resource, namespace: info.Namespace, name: info.Name}
	if info.Subresource != "" {
		made.resource += "/" + info.Subresource
	}
	if made.verb == "create" && made.name == "" {
		made.name, err = nameInBody(sent)
	}
	return made, err
}

// nameInBody reads the name of what is created, and puts the body back.
func nameInBody(sent *http.Request) (string, error) {
	body, err := io.ReadAll(sent.Body)
	if err != nil {
		return "", err
	}
	sent.Body = io.NopCloser(bytes.NewReader(body))
	var object struct {
		Metadata struct{ Name string }
	}
	err = json.Unmarshal(body, &object)
	return object.Metadata.Name, err
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(sent *http.Request) (*http.Response, error) { return f(sent) }
