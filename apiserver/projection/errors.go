// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package projection

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/names"
)

// Error turns an answer of kube-apiserver about a stored object into one about the view's. Code, reason, causes and when to try again stay.
// What went wrong between the two servers is nobody's business, and becomes an internal error.
func Error(err error, resource schema.GroupResource, kind schema.GroupVersionKind, name string) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return apierrors.NewInternalError(errors.New("kube-apiserver could not be asked"))
	}
	about := status.Status()
	return &apierrors.StatusError{ErrStatus: *Status(&about, resource, kind, name)}
}

// Status is Error for what a watch tells.
func Status(stored *metav1.Status, resource schema.GroupResource, kind schema.GroupVersionKind, name string) *metav1.Status {
	if aboutUs(stored) {
		hidden := apierrors.NewInternalError(errors.New("the platform may not do this for you")).ErrStatus
		return &hidden
	}
	shown := stored.DeepCopy()
	shown.Message = inWords(shown.Message, resource, kind)
	if shown.Details != nil && shown.Details.Group == tenancyv1alpha1.SchemeGroupVersion.Group {
		shown.Details.Group = resource.Group
	}
	if shown.Details != nil {
		shown.Details.UID = types.UID(names.ViewUID(string(shown.Details.UID)))
		shown.Details.Kind = kindOf(shown.Details.Kind, resource, kind)
		shown.Details.Causes = slices.DeleteFunc(shown.Details.Causes, func(cause metav1.StatusCause) bool {
			return cause.Type == metav1.CauseTypeUnexpectedServerResponse // what was answered in place of kube-apiserver
		})
		for i := range shown.Details.Causes {
			shown.Details.Causes[i].Message = inWords(shown.Details.Causes[i].Message, resource, kind)
		}
	}
	if name != "" && shown.Reason == metav1.StatusReasonNotFound {
		return &apierrors.NewNotFound(resource, name).ErrStatus
	}
	return shown
}

// aboutUs tells whether kube-apiserver refused the server itself, not what it asked for.
func aboutUs(status *metav1.Status) bool {
	return status.Reason == metav1.StatusReasonUnauthorized ||
		status.Reason == metav1.StatusReasonForbidden && strings.Contains(status.Message, `User "system:serviceaccount:`)
}

// conflictBegins is how Kubernetes begins to tell of conflicts.
const conflictBegins = "Operation cannot be fulfilled on "

// whereStored is how kube-apiserver tells by which key an object is stored.
var whereStored = regexp.MustCompile(`StorageError: invalid object, Code: \d+, Key: \S+, ResourceVersion: \d+, AdditionalErrorMsg: `)

// whatWasAsked is how client-go ends an error for an answer that does not say what is wrong.
var whatWasAsked = regexp.MustCompile(`\(([a-z]+) [a-z]+` + regexp.QuoteMeta("."+tenancyv1alpha1.SchemeGroupVersion.Group))

// inWords puts the view's resource or kind where a message begins with the stored one's, and the view's version in place of the stored one.
// What else it says is somebody's own text, such as that of a quota, which counts what is stored.
func inWords(text string, resource schema.GroupResource, kind schema.GroupVersionKind) string {
	text = whereStored.ReplaceAllString(names.ViewUIDs(text), "")
	text = whatWasAsked.ReplaceAllString(text, "(${1} "+resource.String())
	text = strings.ReplaceAll(text, tenancyv1alpha1.SchemeGroupVersion.String(), kind.GroupVersion().String())
	of := "." + tenancyv1alpha1.SchemeGroupVersion.Group
	for _, stored := range []struct{ begins, shown string }{
		{"cloudspaces" + of, resource.String()},
		{"tenants" + of, resource.String()},
		{"CloudSpace" + of, kind.GroupKind().String()},
		{"Tenant" + of, kind.GroupKind().String()},
	} {
		for _, before := range []string{"", conflictBegins} {
			if rest, found := strings.CutPrefix(text, before+stored.begins); found {
				return before + stored.shown + rest
			}
		}
	}
	return text
}

func kindOf(stored string, resource schema.GroupResource, kind schema.GroupVersionKind) string {
	switch stored {
	case "tenants":
		return resource.Resource
	case "Tenant":
		return kind.Kind
	default:
		return stored
	}
}
