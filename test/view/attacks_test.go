// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// The whole of who may do what: each verb of each resource that discovery tells of, on an object in each place, by each kind of caller.
// What is expected is written down in attackTable; a verb, resource or subresource that is not there fails.
func TestEveryVerbOnEveryPlaceByEverybody(t *testing.T) {
	t.Parallel()
	newTenant(t, "attack-a", member("attack-owner", tenancyv1alpha1.MemberOwner), member("attack-editor", tenancyv1alpha1.MemberEditor),
		member("attack-viewer", tenancyv1alpha1.MemberViewer),
		tenancyv1alpha1.Member{Kind: tenancyv1alpha1.MemberServiceAccount, Name: "gitops", Namespace: "tenant-attack-a", Role: tenancyv1alpha1.MemberEditor})
	newTenant(t, "attack-b", member("attack-bob", tenancyv1alpha1.MemberOwner))
	newCloudSpace(t, "attack-a", "one")
	newCloudSpace(t, "attack-b", "two")
	known(t, customer("attack-owner", "attack-a"))
	known(t, customer("attack-bob", "attack-b"))
	client, err := discovery.NewDiscoveryClientForConfig(adminConfig)
	if err != nil {
		t.Fatal(err)
	}
	served, err := client.ServerResourcesForGroupVersion("view.kubeopera.io/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range served.APIResources {
		for _, verb := range resource.Verbs {
			row, found := attackTable[resource.Name+" "+verb]
			if !found {
				t.Errorf("what is expected of %s %s is not written down", verb, resource.Name)
			}
			for who, caller := range attackers() {
				for _, at := range places {
					t.Run(strings.Join([]string{verb, resource.Name, at, "by", who}, " "), func(t *testing.T) {
						t.Parallel()
						want, found := row.expected(who, at)
						if !found {
							t.Fatal("what is expected is not written down")
						}
						if got := attack(t, caller, resource.Name, verb, at); !slices.Contains(want, got) {
							t.Errorf("the answer is %d, not one of %v", got, want)
						}
					})
				}
			}
		}
	}
	if len(served.APIResources) != 2 {
		t.Errorf("%d resources are served, not cloudspaces and accounts", len(served.APIResources))
	}
}

// Where what is asked for is.
var places = []string{"own", "foreign", "absent", "malformed"}

// attackers are all kinds of callers. "own" is tenant attack-a's.
func attackers() map[string]person {
	two := customer("attack-owner", "attack-a")
	two.Groups = append(two.Groups, "kubeopera:tenant:attack-b")
	doubled := customer("attack-owner", "attack-a")
	doubled.Extra["kubeopera.io/tenant-id"] = []string{"attack-a", "attack-b"}
	disagree := customer("attack-owner", "attack-a")
	disagree.Extra["kubeopera.io/tenant-id"] = []string{"attack-b"}
	none := customer("attack-owner", "attack-a")
	none.Groups, none.Extra = []string{"kubeopera:customers", "system:authenticated"}, nil
	empty := customer("attack-owner", "attack-a")
	empty.Extra["kubeopera.io/tenant-id"] = []string{""}
	left := customer("attack-left", "attack-a")
	account := func(namespace, name string) person {
		return person{rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + namespace + ":" + name,
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
		}}
	}
	return map[string]person{
		"owner": customer("attack-owner", "attack-a"), "editor": customer("attack-editor", "attack-a"), "viewer": customer("attack-viewer", "attack-a"),
		"bob": customer("attack-bob", "attack-b"), "no tenant": none, "an empty tenant": empty, "two tenants": two, "a doubled tenant": doubled,
		"claim and group disagree": disagree, "not a member": left,
		"anonymous":                {rest.ImpersonationConfig{UserName: "system:anonymous", Groups: []string{"system:unauthenticated"}}},
		"a ServiceAccount":         account("tenant-attack-a", "gitops"),
		"a ServiceAccount outside": account("default", "gitops"),
		"super_admin":              superAdmin(),
	}
}

// row is what is expected of a verb: the answers for those that belong to the tenant, by their role, at each place.
type row struct {
	// own, absent and malformed are answers for an Owner at these places.
	own, absent, malformed int
	// editor and viewer tell whether they may do it; so does admin of administrators of the platform.
	editor, viewer, admin bool
	// cluster tells that a place is a name, not a namespace.
	cluster bool
	// all tells that it is done to all in a place, not to one object.
	all bool
}

// attackTable has each verb of each resource.
var attackTable = map[string]row{
	"cloudspaces get":              {own: 200, absent: 404, malformed: 404, editor: true, viewer: true, admin: true},
	"cloudspaces list":             {own: 200, absent: 403, malformed: 403, editor: true, viewer: true, admin: true, all: true},
	"cloudspaces watch":            {own: 200, absent: 403, malformed: 403, editor: true, viewer: true, admin: true, all: true},
	"cloudspaces create":           {own: 409, absent: 403, malformed: 422, admin: true},
	"cloudspaces update":           {own: 200, absent: 404, malformed: 404, editor: true, admin: true},
	"cloudspaces patch":            {own: 200, absent: 404, malformed: 404, editor: true, admin: true},
	"cloudspaces delete":           {own: 200, absent: 404, malformed: 404, admin: true},
	"cloudspaces deletecollection": {own: 200, absent: 403, malformed: 403, admin: true, all: true},
	"accounts get":                 {own: 200, absent: 404, malformed: 404, editor: true, viewer: true, admin: true, cluster: true},
	"accounts list":                {own: 200, absent: 200, malformed: 200, editor: true, viewer: true, admin: true, cluster: true, all: true},
	"accounts watch":               {own: 200, absent: 200, malformed: 200, editor: true, viewer: true, admin: true, cluster: true, all: true},
}

// expected gives the answers that are right.
func (r row) expected(who, at string) (codes []int, found bool) {
	switch who {
	case "super_admin":
		return []int{r.forAdmin(at)}, r.admin
	case "anonymous":
		return []int{http.StatusForbidden, http.StatusUnauthorized}, true
	case "owner":
		return []int{r.forMember(at, true)}, true
	case "editor", "a ServiceAccount":
		return []int{r.forMember(at, r.editor)}, true
	case "viewer":
		return []int{r.forMember(at, r.viewer)}, true
	case "bob":
		return []int{r.forBob(at)}, true
	case "no tenant", "an empty tenant", "two tenants", "a doubled tenant", "claim and group disagree", "not a member", "a ServiceAccount outside":
		return []int{http.StatusForbidden}, true
	default:
		return nil, false
	}
}

// forMember is what a member of the tenant is answered, whose role lets them do it or not.
func (r row) forMember(at string, may bool) int {
	switch {
	case at == "foreign":
		return r.elsewhere()
	case !may:
		return http.StatusForbidden
	case at == "own":
		return r.own
	case at == "absent":
		return r.absent
	default:
		return r.malformed
	}
}

// forBob is what a member of the other tenant is answered: all places but the foreign one are elsewhere.
func (r row) forBob(at string) int {
	if at == "foreign" {
		return r.own
	}
	if r.all && !r.cluster {
		return http.StatusForbidden
	}
	return r.elsewhere()
}

// elsewhere is what is answered outside of one's own tenant: what is named is not there; nothing else may be done.
func (r row) elsewhere() int {
	switch {
	case r.cluster && r.all:
		return http.StatusOK
	case r.viewer && !r.all:
		return http.StatusNotFound
	default:
		return http.StatusForbidden
	}
}

func (r row) forAdmin(at string) int {
	switch {
	case at == "own" || at == "foreign":
		return r.own
	case r.all:
		return http.StatusOK
	case r.malformed == http.StatusUnprocessableEntity && at == "malformed":
		return r.malformed
	default:
		return http.StatusNotFound
	}
}

// target is what is asked for at a place.
type target struct{ namespace, name string }

func targetOf(resource, verb, at string) target {
	if resource == "accounts" {
		return target{name: map[string]string{"own": "attack-a", "foreign": "attack-b", "absent": "attack-none", "malformed": "Bad_Name"}[at]}
	}
	all := slices.Contains([]string{"list", "watch", "deletecollection", "create"}, verb)
	switch {
	case at == "own":
		return target{"tenant-attack-a", "one"}
	case at == "foreign":
		return target{"tenant-attack-b", "two"}
	case at == "absent" && all:
		return target{"tenant-attack-none", "one"}
	case at == "absent":
		return target{"tenant-attack-a", "none"}
	case all && verb != "create":
		return target{"Tenant_Bad", ""}
	default:
		return target{"tenant-attack-a", "Bad_Name"}
	}
}

// attack does one thing, as a dry run, and gives the answer's code. What comes back of the other tenant is an error whatever the code.
func attack(t *testing.T, caller person, resource, verb, at string) int {
	t.Helper()
	code, text := answerTo(t, caller, attackRequest(t, targetOf(resource, verb, at), resource, verb))
	foreign := map[bool]string{true: "Of attack-a", false: "Of attack-b"}[strings.Contains(caller.UserName, "bob")]
	if code == http.StatusOK && caller.UserName != superAdmin().UserName && strings.Contains(text, foreign) {
		t.Errorf("the answer has something of the other tenant in it: %s", text)
	}
	return code
}

// answerTo sends a request as somebody, and gives the answer's code and text.
func answerTo(t *testing.T, caller person, request *http.Request) (code int, text string) {
	t.Helper()
	client, err := rest.HTTPClientFor(caller.config())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func attackRequest(t *testing.T, at target, resource, verb string) *http.Request {
	t.Helper()
	path := "/apis/view.kubeopera.io/v1alpha1/"
	if at.namespace != "" {
		path += "namespaces/" + at.namespace + "/"
	}
	path += resource
	named := !slices.Contains([]string{"list", "watch", "deletecollection", "create"}, verb)
	if named {
		path += "/" + at.name
	}
	query, method, body := "?dryRun=All", http.MethodGet, ""
	object := fmt.Sprintf(`{"apiVersion":"view.kubeopera.io/v1alpha1","kind":"CloudSpace","metadata":{"name":%q,"namespace":%q%%s},"spec":{}}`, at.name, at.namespace)
	switch verb {
	case "get", "list":
		query = ""
	case "watch":
		query = "?watch=true&timeoutSeconds=1"
	case "create":
		method, body = http.MethodPost, fmt.Sprintf(object, "")
	case "update":
		method, body = http.MethodPut, fmt.Sprintf(object, `,"resourceVersion":"`+versionOf(t, at)+`"`)
	case "patch":
		method, body = http.MethodPatch, `{"metadata":{"labels":{"attack":"1"}}}`
	case "delete", "deletecollection":
		method = http.MethodDelete
	}
	request, err := http.NewRequestWithContext(t.Context(), method, address(path+query), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", map[bool]string{true: "application/merge-patch+json", false: "application/json"}[verb == "patch"])
	return request
}

// address is where kube-apiserver serves a path.
func address(path string) string { return strings.TrimSuffix(adminConfig.Host, "/") + path }

// versionOf is the version of a stored object, or one that there is not.
func versionOf(t *testing.T, at target) string {
	t.Helper()
	o := &tenancyv1alpha1.CloudSpace{}
	if err := admin.Get(t.Context(), ctrlclient.ObjectKey{Namespace: at.namespace, Name: at.name}, o); err != nil {
		return "1"
	}
	return o.ResourceVersion
}

// There are no subresources: what is asked of one is not there, whoever asks.
func TestThereAreNoSubresources(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "subresources")
	newCloudSpace(t, "subresources", "one")
	client, err := rest.HTTPClientFor(adminConfig)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	const one = "/apis/view.kubeopera.io/v1alpha1/namespaces/tenant-subresources/cloudspaces/one"
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address(one), nil)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	answer, err := client.Do(request)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(answer.Body.Close()).To(gomega.Succeed())
	g.Expect(answer.StatusCode).To(gomega.Equal(http.StatusOK))
	for _, subresource := range []string{"status", "scale", "kubeconfig", "finalize", "one/two"} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
			request, err := http.NewRequestWithContext(t.Context(), method,
				address(one+"/"+subresource), strings.NewReader("{}"))
			g.Expect(err).NotTo(gomega.HaveOccurred())
			answer, err := client.Do(request)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(answer.Body.Close()).To(gomega.Succeed())
			g.Expect(answer.StatusCode).To(gomega.Equal(http.StatusNotFound), method+" "+subresource)
		}
	}
}

// A selector, a token to go on with, a header: nothing that is sent widens what is seen.
func TestNothingThatIsSentWidensWhatIsSeen(t *testing.T) {
	t.Parallel()
	g := gomega.NewWithT(t)
	newTenant(t, "widen-a", member("widen-alice", tenancyv1alpha1.MemberOwner))
	newTenant(t, "widen-b", member("widen-bob", tenancyv1alpha1.MemberOwner))
	newCloudSpace(t, "widen-a", "mine")
	for _, name := range []string{"theirs-1", "theirs-2", "theirs-3"} {
		newCloudSpace(t, "widen-b", name)
	}
	alice, bob := known(t, customer("widen-alice", "widen-a")), known(t, customer("widen-bob", "widen-b"))
	page, err := bob.sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{Limit: 1})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(page.GetContinue()).NotTo(gomega.BeEmpty())
	everything, err := superAdmin().sees(t, cloudSpaces).List(t.Context(), metav1.ListOptions{Limit: 1})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	for name, options := range map[string]metav1.ListOptions{
		"a label of all others":      {LabelSelector: "kubeopera.io/tenant!=widen-a"},
		"another namespace":          {FieldSelector: "metadata.namespace=tenant-widen-b"},
		"a name of another":          {FieldSelector: "metadata.name=theirs-1"},
		"another's token to go on":   {Limit: 1, Continue: page.GetContinue()},
		"an administrator's, too":    {Limit: 1, Continue: everything.GetContinue()},
		"a state that all are in":    {FieldSelector: "status.state!=deleting"},
		"an old version of the list": {ResourceVersion: "0"},
	} {
		list, err := alice.sees(t, cloudSpaces).List(t.Context(), options)
		if err != nil {
			continue
		}
		for i := range list.Items {
			g.Expect(list.Items[i].GetNamespace()).To(gomega.Equal("tenant-widen-a"), name)
		}
	}
	list, err := alice.sees(t, accounts).List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=widen-b"})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(list.Items).To(gomega.BeEmpty())

	request := attackRequest(t, target{"tenant-widen-b", "theirs-1"}, "cloudspaces", "get")
	request.Header.Set("X-Remote-User", "kubeopera:widen-bob")
	request.Header.Set("X-Remote-Group", "system:masters")
	request.Header.Set("X-Remote-Extra-Kubeopera.io%2ftenant-Id", "widen-b")
	client, err := rest.HTTPClientFor(alice.config())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	answer, err := client.Do(request)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(answer.Body.Close()).To(gomega.Succeed())
	g.Expect(answer.StatusCode).To(gomega.Equal(http.StatusNotFound), "kube-apiserver strips what only it may say")
}

// Who reaches a replica itself, past kube-apiserver, is nobody there by their own word.
func TestNobodyComesInByTheSideDoor(t *testing.T) {
	t.Parallel()
	clients, err := newAuthority("clients")
	if err != nil {
		t.Fatal(err)
	}
	for name, certificate := range map[string]struct {
		authority *authority
		name      string
	}{
		"without a certificate":                             {},
		"with a certificate of one's own for a front proxy": {clients, "front-proxy-client"},
		"with a front proxy's certificate that is not let":  {frontProxy, "another-proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			g := gomega.NewWithT(t)
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			defer transport.CloseIdleConnections()
			if certificate.authority != nil {
				certFile, keyFile, err := certificate.authority.signed(t.TempDir(), certificate.name)
				g.Expect(err).NotTo(gomega.HaveOccurred())
				pair, err := tls.LoadX509KeyPair(certFile, keyFile)
				g.Expect(err).NotTo(gomega.HaveOccurred())
				transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
				"https://"+replicas[0].address+"/apis/view.kubeopera.io/v1alpha1/cloudspaces", nil)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			request.Header.Set("X-Remote-User", "kubeopera:root")
			request.Header.Set("X-Remote-Group", "system:masters")
			request.Header.Set("Impersonate-User", "kubernetes-admin")
			request.Header.Set("Impersonate-Group", "system:masters")
			answer, err := (&http.Client{Transport: transport}).Do(request)
			g.Expect(err).NotTo(gomega.HaveOccurred())
			g.Expect(answer.Body.Close()).To(gomega.Succeed())
			g.Expect(answer.StatusCode).To(gomega.BeElementOf(http.StatusUnauthorized, http.StatusForbidden))
		})
	}
}
