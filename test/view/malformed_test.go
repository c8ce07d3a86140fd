// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
)

// sent is one request as it goes over the wire; "PATH" stands for the path of the tenant's CloudSpaces.
type sent struct {
	method, path, content, accept, body string
}

// send does it, and gives the answer's code and text.
func (s sent) send(t *testing.T, caller person, namespace string) (code int, text string) {
	t.Helper()
	path := strings.ReplaceAll(s.path, "PATH", "/apis/view.kubeopera.io/v1alpha1/namespaces/"+namespace+"/cloudspaces")
	request, err := http.NewRequestWithContext(t.Context(), s.method, address(path), strings.NewReader(s.body))
	if err != nil {
		t.Fatal(err)
	}
	if s.content != "" {
		request.Header.Set("Content-Type", s.content)
	}
	if s.accept != "" {
		request.Header.Set("Accept", s.accept)
	}
	return answerTo(t, caller, request)
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

// address is where kube-apiserver serves a path.
func address(path string) string { return strings.TrimSuffix(adminConfig.Host, "/") + path }

const (
	head  = `"apiVersion":"view.kubeopera.io/v1alpha1","kind":"CloudSpace"`
	apply = "application/apply-patch+yaml"
	merge = "application/merge-patch+json"
	ops   = "application/json-patch+json"
	asis  = "application/json"
)

// kubes tells of errors that kube-apiserver itself calls internal, for everything that it serves.
func kubes(text string) bool {
	return strings.Contains(text, `"failed to create typed patch object (tenant-`) || strings.Contains(text, `"resourceVersion: Invalid value: `)
}

// Whatever is sent, the answer says what is wrong with it, in words of the view. Nothing of it is stored.
func TestWhatIsMalformedIsRefused(t *testing.T) {
	t.Parallel()
	newTenant(t, "malformed", member("malformed-alice", tenancyv1alpha1.MemberOwner))
	alice := known(t, customer("malformed-alice", "malformed"))
	o := newCloudSpace(t, "malformed", "one")
	before := storedAs(t, "malformed", "one")
	aliases := &strings.Builder{}
	aliases.WriteString("a: &a [x,x,x,x,x,x,x,x,x]\n")
	for i := range 12 {
		from, to := string(rune('a'+i)), string(rune('b'+i))
		fmt.Fprintf(aliases, "%s: &%s [%s]\n", to, to, strings.TrimSuffix(strings.Repeat("*"+from+",", 9), ","))
	}
	const one = `{` + head + `,"metadata":{"name":"one"},"spec":{}}`
	for name, s := range map[string]sent{
		"nothing to create":                {http.MethodPost, "PATH", asis, "", ""},
		"null to create":                   {http.MethodPost, "PATH", asis, "", "null"},
		"an array to create":               {http.MethodPost, "PATH", asis, "", "[]"},
		"a string to create":               {http.MethodPost, "PATH", asis, "", `"one"`},
		"no kind":                          {http.MethodPost, "PATH", asis, "", "{}"},
		"another kind":                     {http.MethodPost, "PATH", asis, "", `{"apiVersion":"view.kubeopera.io/v1alpha1","kind":"Account","metadata":{"name":"new"}}`},
		"the stored version":               {http.MethodPost, "PATH", asis, "", `{"apiVersion":"tenancy.kubeopera.io/v1alpha1","kind":"CloudSpace","metadata":{"name":"new"}}`},
		"a kind that is a number":          {http.MethodPost, "PATH", asis, "", `{"apiVersion":"view.kubeopera.io/v1alpha1","kind":1}`},
		"no name":                          {http.MethodPost, "PATH", asis, "", `{` + head + `}`},
		"metadata that is null":            {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":null}`},
		"metadata that is an array":        {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":[]}`},
		"a name that is a number":          {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":1}}`},
		"labels that are an array":         {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new","labels":[]}}`},
		"a label that is a number":         {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new","labels":{"a":1}}}`},
		"annotations that are an array":    {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new","annotations":[]}}`},
		"an annotation that is a number":   {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new","annotations":{"a":1}}}`},
		"finalizers that are an object":    {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new","finalizers":{}}}`},
		"a spec that is an array":          {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new"},"spec":[]}`},
		"a foreign namespace":              {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new","namespace":"tenant-other"}}`},
		"a list":                           {http.MethodPost, "PATH", asis, "", `{"apiVersion":"view.kubeopera.io/v1alpha1","kind":"CloudSpaceList","items":[` + one + `]}`},
		"a key that is there twice":        {http.MethodPost, "PATH?fieldValidation=Strict", asis, "", `{` + head + `,"metadata":{"name":"new"},"metadata":{"name":"new"}}`},
		"nothing but nesting":              {http.MethodPost, "PATH", asis, "", strings.Repeat("[", 1<<20)},
		"a nested spec":                    {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new"},"spec":` + strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20000) + `}`},
		"a body that is too large":         {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new","annotations":{"a":"` + strings.Repeat("a", 4<<20) + `"}}}`},
		"annotations that are too large":   {http.MethodPost, "PATH", asis, "", `{` + head + `,"metadata":{"name":"new","annotations":{"a":"` + strings.Repeat("a", 1<<20) + `"}}}`},
		"YAML of aliases":                  {http.MethodPost, "PATH", "application/yaml", "", aliases.String()},
		"protobuf":                         {http.MethodPost, "PATH", "application/vnd.kubernetes.protobuf", "", "k8s\x00\n\x00"},
		"CBOR":                             {http.MethodPost, "PATH", "application/cbor", "", "\xd9\xd9\xf7\xa0"},
		"text":                             {http.MethodPost, "PATH", "text/plain", "", one},
		"a dry run of some":                {http.MethodPost, "PATH?dryRun=Some", asis, "", one},
		"creating at another's name":       {http.MethodPost, "PATH/one", asis, "", `{` + head + `,"metadata":{"name":"new"}}`},
		"nothing to update":                {http.MethodPut, "PATH/one", asis, "", ""},
		"another name":                     {http.MethodPut, "PATH/one", asis, "", `{` + head + `,"metadata":{"name":"two"}}`},
		"no version":                       {http.MethodPut, "PATH/one", asis, "", one},
		"a version of 0":                   {http.MethodPut, "PATH/one", asis, "", `{` + head + `,"metadata":{"name":"one","resourceVersion":"0"}}`},
		"a version that is a number":       {http.MethodPut, "PATH/one", asis, "", `{` + head + `,"metadata":{"name":"one","resourceVersion":1}}`},
		"an update of all":                 {http.MethodPut, "PATH", asis, "", one},
		"an update of another's UID":       {http.MethodPut, "PATH/one", asis, "", `{` + head + `,"metadata":{"name":"one","uid":"` + string(o.UID) + `","resourceVersion":"` + o.ResourceVersion + `"}}`},
		"an update with a broken note":     {http.MethodPut, "PATH/one", asis, "", `{` + head + `,"metadata":{"name":"one","annotations":{"a":1},"resourceVersion":"` + o.ResourceVersion + `"}}`},
		"no patch":                         {http.MethodPatch, "PATH/one", merge, "", ""},
		"a patch that is an array":         {http.MethodPatch, "PATH/one", merge, "", "[]"},
		"a patch of the name":              {http.MethodPatch, "PATH/one", merge, "", `{"metadata":{"name":"two"}}`},
		"a patch of the namespace":         {http.MethodPatch, "PATH/one", merge, "", `{"metadata":{"namespace":"tenant-other"}}`},
		"a patch of the kind":              {http.MethodPatch, "PATH/one", merge, "", `{"kind":"Account"}`},
		"a patch of the UID":               {http.MethodPatch, "PATH/one", merge, "", `{"metadata":{"uid":"11111111-2222-4333-8444-555555555555"}}`},
		"a patch of the metadata":          {http.MethodPatch, "PATH/one", merge, "", `{"metadata":null}`},
		"a patch to metadata of text":      {http.MethodPatch, "PATH/one", merge, "", `{"metadata":"a"}`},
		"a patch to a broken note":         {http.MethodPatch, "PATH/one", merge, "", `{"metadata":{"annotations":{"a":1}}}`},
		"a patch to an array of notes":     {http.MethodPatch, "PATH/one", merge, "", `{"metadata":{"annotations":[]}}`},
		"a patch to broken labels":         {http.MethodPatch, "PATH/one", merge, "", `{"metadata":{"labels":[1]}}`},
		"a patch to a spec of text":        {http.MethodPatch, "PATH/one", merge, "", `{"spec":"a"}`},
		"a patch of all":                   {http.MethodPatch, "PATH", merge, "", `{"spec":{}}`},
		"operations that are an object":    {http.MethodPatch, "PATH/one", ops, "", `{}`},
		"an operation on the whole":        {http.MethodPatch, "PATH/one", ops, "", `[{"op":"replace","path":"","value":[]}]`},
		"an operation without a path":      {http.MethodPatch, "PATH/one", ops, "", `[{"op":"remove"}]`},
		"an operation that there is not":   {http.MethodPatch, "PATH/one", ops, "", `[{"op":"rename","path":"/spec"}]`},
		"removing the metadata":            {http.MethodPatch, "PATH/one", ops, "", `[{"op":"remove","path":"/metadata"}]`},
		"removing the version":             {http.MethodPatch, "PATH/one", ops, "", `[{"op":"remove","path":"/metadata/resourceVersion"}]`},
		"operations on a negative index":   {http.MethodPatch, "PATH/one", ops, "", `[{"op":"add","path":"/metadata/finalizers","value":[]},{"op":"remove","path":"/metadata/finalizers/-1"}]`},
		"operations that copy and copy":    {http.MethodPatch, "PATH/one", ops, "", `[` + strings.TrimSuffix(strings.Repeat(`{"op":"copy","from":"","path":"/spec/a"},`, 40), ",") + `]`},
		"too many operations":              {http.MethodPatch, "PATH/one", ops, "", `[` + strings.TrimSuffix(strings.Repeat(`{"op":"test","path":"/kind","value":"CloudSpace"},`, 10001), ",") + `]`},
		"a strategic merge patch":          {http.MethodPatch, "PATH/one", "application/strategic-merge-patch+json", "", `{}`},
		"an apply patch in CBOR":           {http.MethodPatch, "PATH/one?fieldManager=a", "application/apply-patch+cbor", "", "\xa0"},
		"an apply patch that is half":      {http.MethodPatch, "PATH/one?fieldManager=a", apply + ";;", "", one},
		"applying nothing":                 {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", ""},
		"applying null":                    {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", "null"},
		"applying an array":                {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", "- a"},
		"applying no YAML":                 {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", "\t: {"},
		"applying aliases":                 {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", aliases.String()},
		"applying infinity":                {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", "apiVersion: view.kubeopera.io/v1alpha1\nkind: CloudSpace\nspec: {resources: {pods: .inf}}\n"},
		"applying a key twice":             {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"spec":{},"spec":{"suspend":true}}`},
		"applying a nested key twice":      {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":{"finalizers":["a"],"finalizers":[]}}`},
		"applying to another name":         {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":{"name":"two"}}`},
		"applying to a foreign namespace":  {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":{"namespace":"tenant-other"}}`},
		"applying to a numbered namespace": {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":{"namespace":1}}`},
		"applying a stored object":         {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{"apiVersion":"tenancy.kubeopera.io/v1alpha1","kind":"CloudSpace"}`},
		"applying metadata of null":        {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":null}`},
		"applying metadata of text":        {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":"a"}`},
		"applying a broken note":           {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":{"annotations":{"a":1,"tenancy.kubeopera.io/template":"2"}}}`},
		"applying a broken finalizer":      {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":{"finalizers":"a"}}`},
		"applying who owns what":           {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":{"managedFields":"a","resourceVersion":"1"}}`},
		"applying a field that is not":     {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"spec":{"cpus":1}}`},
		"applying a spec that is an array": {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"spec":[]}`},
		"applying a foreign UID":           {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":{"uid":"11111111-2222-4333-8444-555555555555"}}`},
		"applying a numbered UID":          {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"metadata":{"uid":1}}`},
		"applying as nobody":               {http.MethodPatch, "PATH/one", apply, "", `{` + head + `}`},
		"applying to all":                  {http.MethodPatch, "PATH?fieldManager=a", apply, "", `{` + head + `}`},
		"applying all of a body too large": {http.MethodPatch, "PATH/one?fieldManager=a", apply, "", `{` + head + `,"spec":{"displayName":"` + strings.Repeat("a", 4<<20) + `"}}`},
		"a deletion of an array":           {http.MethodDelete, "PATH/one", asis, "", `[]`},
		"a deletion of another kind":       {http.MethodDelete, "PATH/one", asis, "", one},
		"a deletion by an odd policy":      {http.MethodDelete, "PATH/one", asis, "", `{"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Sideways"}`},
		"a deletion of the stored UID":     {http.MethodDelete, "PATH/one", asis, "", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"` + string(o.UID) + `"}}`},
		"a deletion of a shouted UID":      {http.MethodDelete, "PATH/one", asis, "", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"` + strings.ToUpper(string(o.UID)) + `"}}`},
		"a deletion of an old version":     {http.MethodDelete, "PATH/one", asis, "", `{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"1"}}`},
		"a deletion of what is selected":   {http.MethodDelete, "PATH?labelSelector=%3D%3D", asis, "", ``},
		"a name of two dots":               {http.MethodGet, "PATH/%2e%2e", "", "", ""},
		"a name of a percent sign":         {http.MethodGet, "PATH/a%25b", "", "", ""},
		"a name with a slash":              {http.MethodGet, "PATH/a%2Fb", "", "", ""},
		"deleting a percent sign":          {http.MethodDelete, "PATH/a%25b", asis, "", ""},
		"patching a percent sign":          {http.MethodPatch, "PATH/a%25b", merge, "", "{}"},
		"applying to a percent sign":       {http.MethodPatch, "PATH/a%25b?fieldManager=a", apply, "", `{` + head + `}`},
		"a name that is too long":          {http.MethodGet, "PATH/" + strings.Repeat("a", 5000), "", "", ""},
		"an account in a namespace":        {http.MethodGet, "/apis/view.kubeopera.io/v1alpha1/namespaces/tenant-malformed/accounts", "", "", ""},
		"an odd limit":                     {http.MethodGet, "PATH?limit=many", "", "", ""},
		"an odd token to go on with":       {http.MethodGet, "PATH?limit=1&continue=%00", "", "", ""},
		"an odd version":                   {http.MethodGet, "PATH?resourceVersion=new", "", "", ""},
		"a version below zero":             {http.MethodGet, "PATH?resourceVersion=-1", "", "", ""},
		"a match of no version":            {http.MethodGet, "PATH?resourceVersionMatch=Exact", "", "", ""},
		"an exact version of 0":            {http.MethodGet, "PATH?resourceVersionMatch=Exact&resourceVersion=0", "", "", ""},
		"initial events of a list":         {http.MethodGet, "PATH?sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "", "", ""},
		"initial events without a match":   {http.MethodGet, "PATH?watch=1&sendInitialEvents=true&timeoutSeconds=1", "", "", ""},
		"a watch from an odd version":      {http.MethodGet, "PATH?watch=1&resourceVersion=new&timeoutSeconds=1", "", "", ""},
		"an odd field":                     {http.MethodGet, "PATH?fieldSelector=status.hostNamespace%3Da", "", "", ""},
		"an odd state":                     {http.MethodGet, "PATH?fieldSelector=status.state%3DPending", "", "", ""},
		"an odd label":                     {http.MethodGet, "PATH?labelSelector=a%3D%3D%3Db", "", "", ""},
		"whole objects in protobuf":        {http.MethodGet, "PATH/one", "", "application/vnd.kubernetes.protobuf", ""},
		"a watch in protobuf":              {http.MethodGet, "PATH?watch=1&timeoutSeconds=1", "", "application/vnd.kubernetes.protobuf", ""},
		"a watch in YAML":                  {http.MethodGet, "PATH?watch=1&timeoutSeconds=1", "", "application/yaml", ""},
		"an object in CBOR":                {http.MethodGet, "PATH/one", "", "application/cbor", ""},
		"a table in protobuf":              {http.MethodGet, "PATH/one", "", "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1", ""},
		"a table that includes all":        {http.MethodGet, "PATH/one?includeObject=All", "", "application/json;as=Table;g=meta.k8s.io;v=v1", ""},
		"a table of the group":             {http.MethodGet, "PATH/one", "", "application/json;as=Table;g=view.kubeopera.io;v=v1alpha1", ""},
		"a stored object":                  {http.MethodGet, "PATH/one", "", "application/json;as=CloudSpace;g=tenancy.kubeopera.io;v=v1alpha1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			code, text := s.send(t, alice, "tenant-malformed")
			if len(text) > 2000 {
				text = text[:2000]
			}
			if code < 400 || code >= 500 && !kubes(text) {
				t.Errorf("the answer is %d: %s", code, text)
			}
			if strings.Contains(text, "tenancy.kubeopera.io") && !strings.Contains(s.body, "tenancy.kubeopera.io") {
				t.Errorf("it names what is stored: %s", text)
			}
			if strings.Contains(text, string(o.UID)) && !strings.Contains(s.body, string(o.UID)) {
				t.Errorf("it has the stored UID: %s", text)
			}
		})
	}
	if after := storedAs(t, "malformed", "one"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was changed: %v", after)
	}
	list := &tenancyv1alpha1.CloudSpaceList{}
	if err := admin.List(t.Context(), list, ctrlclient.InNamespace("tenant-malformed")); err != nil || len(list.Items) != 1 {
		t.Errorf("there are %d: %v", len(list.Items), err)
	}
}
