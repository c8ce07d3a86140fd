// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/tantilium/cloud-runner/apiserver/projection"
)

// metaScheme has the kinds that answers have beside objects: Status, and what objects are turned into on request.
var (
	metaScheme = runtime.NewScheme()
	metaCodecs = serializer.NewCodecFactory(metaScheme)
)

func init() { //nolint:gochecknoinits // a scheme cannot be made in an expression
	metav1.AddToGroupVersion(metaScheme, schema.GroupVersion{Version: "v1"})
}

// untyped tells the handlers how to deal with objects that have no Go types: as they are.
type untyped struct{}

// ObjectKinds gives the kind that an object has by its own word.
func (untyped) ObjectKinds(o runtime.Object) (kinds []schema.GroupVersionKind, unversioned bool, err error) {
	if _, ok := o.(runtime.Unstructured); ok {
		return []schema.GroupVersionKind{o.GetObjectKind().GroupVersionKind()}, false, nil
	}
	return metaScheme.ObjectKinds(o)
}

// Recognizes tells whether a kind has a Go type.
func (untyped) Recognizes(kind schema.GroupVersionKind) bool { return metaScheme.Recognizes(kind) }

// New makes an empty object of a kind.
func (untyped) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o, nil
}

// Default sets nothing: kube-apiserver does, when it stores an object.
func (untyped) Default(runtime.Object) {}

// Convert is not called: there is one version.
func (untyped) Convert(in, _, _ any) error { return fmt.Errorf("%T cannot be converted", in) }

// ConvertToVersion leaves objects as they are: there is one version.
func (untyped) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel says which fields objects can be selected by.
func (untyped) ConvertFieldLabel(kind schema.GroupVersionKind, label, value string) (newLabel, newValue string, err error) {
	switch label {
	case "metadata.name", "metadata.namespace":
		return label, value, nil
	case projection.StateField:
		if kind.Kind == "CloudSpace" {
			return label, value, nil
		}
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// SupportedMediaTypes are those of custom resources. Protobuf is for what has Go types: metadata of objects alone, which kube-controller-manager
// asks for.
func (u untyped) SupportedMediaTypes() []runtime.SerializerInfo {
	serializer := func(options json.SerializerOptions) *json.Serializer {
		return json.NewSerializerWithOptions(json.DefaultMetaFactory, u, u, options)
	}
	return []runtime.SerializerInfo{
		{
			MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
			Serializer:       serializer(json.SerializerOptions{}),
			PrettySerializer: serializer(json.SerializerOptions{Pretty: true}),
			StrictSerializer: serializer(json.SerializerOptions{Strict: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{
				EncodesAsText: true, Serializer: serializer(json.SerializerOptions{}), Framer: json.Framer,
			},
		},
		{
			MediaType: runtime.ContentTypeYAML, MediaTypeType: "application", MediaTypeSubType: "yaml", EncodesAsText: true,
			Serializer:       serializer(json.SerializerOptions{Yaml: true}),
			StrictSerializer: serializer(json.SerializerOptions{Yaml: true, Strict: true}),
		},
		{
			MediaType: runtime.ContentTypeProtobuf, MediaTypeType: "application", MediaTypeSubType: "vnd.kubernetes.protobuf",
			Serializer:       protobuf.NewSerializer(u, u),
			StrictSerializer: protobuf.NewSerializer(u, u),
			StreamSerializer: &runtime.StreamSerializerInfo{
				Serializer: protobuf.NewRawSerializer(u, u), Framer: protobuf.LengthDelimitedFramer,
			},
		},
	}
}

// textTypes are those that whole objects can be written in.
func (u untyped) textTypes() []runtime.SerializerInfo { return u.SupportedMediaTypes()[:2] }

// EncoderForVersion writes objects as they are, and a Status as one of version v1.
func (untyped) EncoderForVersion(encoder runtime.Encoder, _ runtime.GroupVersioner) runtime.Encoder {
	return asItIs{encoder, metaCodecs.EncoderForVersion(encoder, schema.GroupVersion{Version: "v1"})}
}

// DecoderToVersion reads objects as they are.
func (untyped) DecoderToVersion(decoder runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder
}

type asItIs struct{ objects, others runtime.Encoder }

// Identifier names the encoding.
func (e asItIs) Identifier() runtime.Identifier { return "view-" + e.objects.Identifier() }

// Encode writes an object.
func (e asItIs) Encode(o runtime.Object, w io.Writer) error {
	if _, ok := o.(runtime.Unstructured); ok {
		return e.objects.Encode(o, w)
	}
	return e.others.Encode(o, w)
}
