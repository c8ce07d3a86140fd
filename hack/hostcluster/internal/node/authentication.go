// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// AuthenticationFor puts the cluster's OpenID provider, and the authority that signed its certificate, into the authentication
// configuration that the platform ships. All else, who a token is, stays as it is shipped.
func AuthenticationFor(shipped, authority []byte) ([]byte, error) {
	var config map[string]any
	if err := yaml.Unmarshal(shipped, &config); err != nil {
		return nil, fmt.Errorf("read authentication configuration: %w", err)
	}
	providers, _ := config["jwt"].([]any)
	if len(providers) != 1 {
		return nil, errors.New("the authentication configuration must have one provider")
	}
	provider, _ := providers[0].(map[string]any)
	issuer, ok := provider["issuer"].(map[string]any)
	if !ok {
		return nil, errors.New("the authentication configuration has no issuer")
	}
	issuer["url"] = "https://" + AuthService
	issuer["certificateAuthority"] = string(authority)
	contents, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("encode authentication configuration: %w", err)
	}
	return contents, nil
}
