// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schema has the definitions of the view's resources: names, columns, and what their fields mean. They are generated from apis/view
// in the form of CustomResourceDefinitions, which are never installed, so that they can be described to clients exactly as kube-apiserver
// describes the stored resources.
package schema

import (
	"embed"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"
)

//go:embed *.yaml
var files embed.FS

// Definition is one resource of the view.
type Definition = apiextensionsv1.CustomResourceDefinition

// Definitions of all resources, by their plural names.
func Definitions() (map[string]*Definition, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	definitions := map[string]*Definition{}
	for _, entry := range entries {
		definition, err := read(entry.Name())
		if err != nil {
			return nil, err
		}
		definitions[definition.Spec.Names.Plural] = definition
	}
	return definitions, nil
}

func read(name string) (*Definition, error) {
	content, err := files.ReadFile(name)
	if err != nil {
		return nil, err
	}
	definition := &Definition{}
	if err := yaml.UnmarshalStrict(content, definition); err != nil {
		return nil, err
	}
	return definition, nil
}

// OpenAPIV2 describes all resources, as version 2 of OpenAPI can.
func OpenAPIV2(definitions map[string]*Definition) (*spec.Swagger, error) {
	var all []*spec.Swagger
	for _, definition := range definitions {
		one, err := builder.BuildOpenAPIV2(definition, definition.Spec.Versions[0].Name, builder.Options{V2: true, StripValueValidation: true, StripNullable: true})
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return builder.MergeSpecs(nothing(), all...)
}

// OpenAPIV3 describes all resources.
func OpenAPIV3(definitions map[string]*Definition) (*spec3.OpenAPI, error) {
	var all []*spec3.OpenAPI
	for _, definition := range definitions {
		one, err := builder.BuildOpenAPIV3(definition, definition.Spec.Versions[0].Name, builder.Options{V2: false})
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return builder.MergeSpecsV3(all...)
}

// nothing is a description to begin with.
func nothing() *spec.Swagger {
	return &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger: "2.0",
		Info:    &spec.Info{InfoProps: spec.InfoProps{Title: "kubeopera-api", Version: "v1alpha1"}},
		Paths:   &spec.Paths{Paths: map[string]spec.PathItem{}}, Definitions: spec.Definitions{},
	}}
}
