// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// Load reads, decodes, completes and checks the PlatformConfig in a file.
func Load(path string) (*PlatformConfig, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	config, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}

// Parse decodes a PlatformConfig in YAML or JSON, strictly, completes it with defaults and checks it. The error names every
// field that is unknown or wrong.
func Parse(text []byte) (*PlatformConfig, error) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	config := &PlatformConfig{}
	if err := runtime.DecodeInto(codecs.UniversalDecoder(SchemeGroupVersion), text, config); err != nil {
		return nil, err
	}
	SetDefaults(config)
	if err := Validate(config).ToAggregate(); err != nil {
		return nil, err
	}
	return config, nil
}
