// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tantilium/cloud-runner/apiserver/projection"
	"github.com/tantilium/cloud-runner/apiserver/registry"
	"github.com/tantilium/cloud-runner/apiserver/scope"
	"github.com/tantilium/cloud-runner/internal/names"
)

// narrow keeps members of a tenant to its namespace. What is named elsewhere is not there; what is done to all elsewhere is forbidden.
func narrow(visible scope.Scope, asked registry.Asked) (registry.Asked, error) {
	asked, err := narrowFields(asked)
	if err != nil || visible.All() {
		return asked, err
	}
	own := names.TenantNamespace(visible.Tenant())
	switch {
	case asked.Namespace == own:
		return asked, nil
	case asked.Name != "":
		return asked, apierrors.NewNotFound(resource, asked.Name)
	case asked.Namespace == "":
		asked.Namespace = own
		return asked, nil
	default:
		return asked, apierrors.NewForbidden(resource, "", fmt.Errorf("your CloudSpaces are in namespace %s", own))
	}
}

// narrowFields turns what is selected by into what is stored.
func narrowFields(asked registry.Asked) (registry.Asked, error) {
	if asked.Options == nil || asked.Options.FieldSelector == nil {
		return asked, nil
	}
	selector, err := projection.SelectPhase(asked.Options.FieldSelector)
	if err != nil {
		return asked, apierrors.NewBadRequest(err.Error())
	}
	asked.Options.FieldSelector = selector
	return asked, nil
}
