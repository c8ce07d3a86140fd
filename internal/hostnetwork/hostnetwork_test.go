// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package hostnetwork

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
)

func slice(addresses ...string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: addresses}},
		Ports:      []discoveryv1.EndpointPort{{Port: new(int32(6443))}},
	}
}

func service(namespace, name string, addresses ...string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: addresses[0], ClusterIPs: addresses, Ports: []corev1.ServicePort{{Port: 443}}},
	}
}

func reader(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
}

func TestWhatIsLeftOutIsFound(t *testing.T) {
	servers, resolver := service("default", "kubernetes", "10.96.0.1", "fd00::1"), service("kubeopera-core", "cloudspace-resolver", "10.96.0.53")
	tests := map[string]struct {
		objects  []client.Object
		given    configv1alpha1.Network
		servers  []string
		resolver string
		wantErr  string
	}{
		"all of it, in an order of its own": {
			objects: []client.Object{slice("192.0.2.2", "192.0.2.1", "192.0.2.1"), servers, resolver},
			servers: []string{"10.96.0.1:443", "192.0.2.1:6443", "192.0.2.2:6443", "[fd00::1]:443"}, resolver: "10.96.0.53",
		},
		"nothing that is given": {
			given:   configv1alpha1.Network{APIServers: []string{"192.0.2.9:443"}, Resolver: "192.0.2.53"},
			servers: []string{"192.0.2.9:443"}, resolver: "192.0.2.53",
		},
		"no resolver":              {objects: []client.Object{slice("192.0.2.1"), servers}, wantErr: "finding the resolver of CloudSpaces"},
		"a resolver with no place": {objects: []client.Object{slice("192.0.2.1"), servers, service("kubeopera-core", "cloudspace-resolver", "None")}, wantErr: "has no address"},
		"no API server":            {objects: []client.Object{slice(), servers, resolver}, wantErr: "no API server of the host is listed"},
		"no Service for them":      {objects: []client.Object{slice("192.0.2.1"), resolver}, wantErr: "finding the host's API servers"},
		"an address that is none":  {objects: []client.Object{slice("a.example.com"), servers, resolver}, wantErr: "a.example.com"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Complete(t.Context(), reader(tt.objects...), tt.given)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Fatalf("error is %v, want %q", err, tt.wantErr)
				}
				return
			}
			if err != nil || !slices.Equal(got.APIServers, tt.servers) || got.Resolver != tt.resolver {
				t.Errorf("found %v, %q, %v; want %v, %q", got.APIServers, got.Resolver, err, tt.servers, tt.resolver)
			}
		})
	}
}

// watched lets minutes pass after a change, and gives what the watch ended with.
func watched(t *testing.T, change func(ctx context.Context, c client.Client) error) (ended bool, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := reader(slice("192.0.2.1", "192.0.2.9"), service("default", "kubernetes", "10.96.0.1"), service("kubeopera-core", "cloudspace-resolver", "10.96.0.53"))
		found, completing := Complete(t.Context(), c, configv1alpha1.Network{})
		if completing != nil {
			t.Fatal(completing)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := make(chan error, 1)
		go func() { result <- Watch{Reader: c, Found: found, Every: time.Minute}.Start(ctx) }()
		<-time.After(5 * time.Minute)
		if failed := change(ctx, c); failed != nil {
			t.Fatal(failed)
		}
		<-time.After(5 * time.Minute)
		select {
		case err = <-result:
			ended = true
		default:
		}
		cancel()
		synctest.Wait()
	})
	return ended, err
}

func TestAChangeEndsTheWatch(t *testing.T) {
	tests := map[string]struct {
		change func(ctx context.Context, c client.Client) error
		want   string
	}{
		"an API server more": {func(ctx context.Context, c client.Client) error {
			return errors.Join(c.Delete(ctx, slice()), c.Create(ctx, slice("192.0.2.1", "192.0.2.2")))
		}, "its API servers are"},
		"another resolver": {func(ctx context.Context, c client.Client) error {
			return c.Update(ctx, service("kubeopera-core", "cloudspace-resolver", "10.96.0.54"))
		}, "is 10.96.0.54, it was 10.96.0.53"},
		"an API server less": {func(ctx context.Context, c client.Client) error {
			return errors.Join(c.Delete(ctx, slice()), c.Create(ctx, slice("192.0.2.1")))
		}, ""},
		"nothing":                    {func(context.Context, client.Client) error { return nil }, ""},
		"an answer that never comes": {func(ctx context.Context, c client.Client) error { return c.Delete(ctx, slice()) }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			ended, err := watched(t, tt.change)
			if tt.want == "" {
				if ended {
					t.Errorf("it ended with %v", err)
				}
				return
			}
			if !ended || !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("ended is %t with %v, want %q", ended, err, tt.want)
			}
		})
	}
}
