// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
)

// Where kube-apiserver publishes how aggregated servers know it: as whom it signs in, and by whose certificate.
const (
	authenticationNamespace = "kube-system"
	authenticationConfigMap = "extension-apiserver-authentication"
)

// CheckFrontProxy refuses settings of the host cluster with which others than kube-apiserver could say who a caller is: an authority for
// front proxies that signs clients as well, without a list of the names that are front proxies.
func CheckFrontProxy(ctx context.Context, client kubernetes.Interface) error {
	settings, err := client.CoreV1().ConfigMaps(authenticationNamespace).Get(ctx, authenticationConfigMap, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("how kube-apiserver signs in cannot be read: %w", err)
	}
	return checkFrontProxy(settings.Data)
}

func checkFrontProxy(settings map[string]string) error {
	authority := settings["requestheader-client-ca-file"]
	if authority == "" {
		return errors.New("kube-apiserver has no authority for front proxies (--requestheader-client-ca-file): nobody could be let in")
	}
	var names []string
	if text := settings["requestheader-allowed-names"]; text != "" {
		if err := json.Unmarshal([]byte(text), &names); err != nil {
			return fmt.Errorf("requestheader-allowed-names: %w", err)
		}
	}
	if len(names) == 0 {
		return errors.New("kube-apiserver names no front proxy (--requestheader-allowed-names): whoever has a certificate of its authority could pose as anybody")
	}
	shared, err := share(authority, settings["client-ca-file"])
	if err != nil {
		return err
	}
	if shared {
		return errors.New("kube-apiserver has one authority for clients and for front proxies: a client with a front proxy's name could pose as anybody")
	}
	return nil
}

// share tells whether two bundles have a certificate in common.
func share(one, other string) (bool, error) {
	if one == "" || other == "" {
		return false, nil
	}
	these, err := cert.ParseCertsPEM([]byte(one))
	if err != nil {
		return false, fmt.Errorf("requestheader-client-ca-file: %w", err)
	}
	those, err := cert.ParseCertsPEM([]byte(other))
	if err != nil {
		return false, fmt.Errorf("client-ca-file: %w", err)
	}
	for _, a := range these {
		for _, b := range those {
			if bytes.Equal(a.RawSubjectPublicKeyInfo, b.RawSubjectPublicKeyInfo) {
				return true, nil
			}
		}
	}
	return false, nil
}
