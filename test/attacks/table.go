// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package attacks

import "net/http"

// Where what is asked for is.
const (
	placeOwn        = "own"
	placeForeign    = "foreign"
	placeAbsent     = "absent"
	placeMalformed  = "malformed"
	placeEverywhere = "everywhere"
)

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

// table has each verb of each resource.
var table = map[string]row{
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

// places at which it can be asked for.
func (r row) places() []string {
	places := []string{placeOwn, placeForeign, placeAbsent, placeMalformed}
	if r.all && !r.cluster {
		places = append(places, placeEverywhere)
	}
	return places
}

// expected gives the answer that is right for who comes as somebody whom kube-apiserver knows.
func (r row) expected(who, at string) (code int, found bool) {
	switch who {
	case "super_admin":
		return r.forAdmin(at), r.admin
	case "owner":
		return r.forMember(at, true), true
	case "editor", "a ServiceAccount":
		return r.forMember(at, r.editor), true
	case "viewer":
		return r.forMember(at, r.viewer), true
	case "bob":
		return r.forBob(at), true
	case "anonymous", "not a member", "a ServiceAccount outside",
		"no tenant", "an empty tenant", "two tenants", "a doubled tenant", "claim and group disagree", "an administrator with a tenant":
		return http.StatusForbidden, true
	default:
		return 0, false
	}
}

// forMember is what a member of the tenant is answered, whose role lets them do it or not.
func (r row) forMember(at string, may bool) int {
	switch {
	case at == placeForeign:
		return r.elsewhere()
	case at == placeEverywhere:
		return r.everywhere()
	case !may:
		return http.StatusForbidden
	case at == placeOwn:
		return r.own
	case at == placeAbsent:
		return r.absent
	default:
		return r.malformed
	}
}

// forBob is what a member of the other tenant is answered: all places but the foreign one are elsewhere.
func (r row) forBob(at string) int {
	switch {
	case at == placeForeign:
		return r.own
	case at == placeEverywhere:
		return r.everywhere()
	case r.all && !r.cluster:
		return http.StatusForbidden
	default:
		return r.elsewhere()
	}
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

// everywhere is what a member is answered who asks for all namespaces: what may be seen is one's own, wherever; more may not be done.
func (r row) everywhere() int {
	if r.viewer {
		return http.StatusOK
	}
	return http.StatusForbidden
}

func (r row) forAdmin(at string) int {
	switch {
	case at == placeOwn || at == placeForeign:
		return r.own
	case at == placeEverywhere && !r.viewer:
		// As of custom resources, there is no such path.
		return http.StatusNotFound
	case r.all:
		return http.StatusOK
	case r.malformed == http.StatusUnprocessableEntity && at == placeMalformed:
		return r.malformed
	default:
		return http.StatusNotFound
	}
}
