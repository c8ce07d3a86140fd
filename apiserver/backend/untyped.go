// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// untyped reads and writes JSON as it is. Only a Status has a type: client-go makes errors of it.
var untyped = func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return untypedSerializer{serializer.NewCodecFactory(scheme).WithoutConversion()}
}()

type untypedSerializer struct{ runtime.NegotiatedSerializer }

// EncoderForVersion writes objects as they are.
func (untypedSerializer) EncoderForVersion(runtime.Encoder, runtime.GroupVersioner) runtime.Encoder {
	return codec{}
}

// DecoderToVersion reads objects as they are.
func (untypedSerializer) DecoderToVersion(runtime.Decoder, runtime.GroupVersioner) runtime.Decoder {
	return codec{}
}

type codec struct{}

// Identifier names the encoding.
func (codec) Identifier() runtime.Identifier { return "untyped" }

// Encode writes an untyped object.
func (codec) Encode(object runtime.Object, w io.Writer) error {
	return unstructured.UnstructuredJSONScheme.Encode(object, w)
}

// Decode reads what has a kind. A Status becomes one; everything else stays untyped.
func (codec) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := unstructured.UnstructuredJSONScheme.Decode(data, nil, nil)
	if err != nil || kind.Group != "" || kind.Kind != "Status" {
		return object, kind, err
	}
	status, ok := into.(*metav1.Status)
	if !ok {
		status = &metav1.Status{}
	}
	content, ok := object.(runtime.Unstructured)
	if !ok {
		return nil, kind, fmt.Errorf("a Status is %T", object)
	}
	return status, kind, runtime.DefaultUnstructuredConverter.FromUnstructured(content.UnstructuredContent(), status)
}

func object(result rest.Result) (*unstructured.Unstructured, error) {
	got, err := result.Get()
	if err != nil {
		return nil, err
	}
	o, ok := got.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("kube-apiserver answered with %T in place of an object", got)
	}
	return o, nil
}

func asList(got runtime.Object) (*unstructured.UnstructuredList, error) {
	list, ok := got.(*unstructured.UnstructuredList)
	if !ok {
		return nil, fmt.Errorf("kube-apiserver answered with %T in place of a list", got)
	}
	return list, nil
}
