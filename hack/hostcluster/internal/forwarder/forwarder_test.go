// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package forwarder

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestParseServiceName(t *testing.T) {
	for _, test := range []struct {
		serverName, namespace, name string
		ok                          bool
	}{
		{"alice.vcluster-alice.svc", "vcluster-alice", "alice", true},
		{"alice--dev.vcluster-alice--dev.svc.cluster.local", "vcluster-alice--dev", "alice--dev", true},
		{"alice.vcluster-alice.svc.", "vcluster-alice", "alice", true},
		{"kubernetes.default.svc", "", "", false},
		{"kubernetes.default.svc.cluster.local", "", "", false},
		{"kubernetes.other.svc", "other", "kubernetes", true},
		{"alice.vcluster-alice", "", "", false},
		{"a.b.c.svc", "", "", false},
		{".b.svc", "", "", false},
		{"a..svc", "", "", false},
		{"example.com", "", "", false},
		{"", "", "", false},
	} {
		namespace, name, ok := ParseServiceName(test.serverName)
		if namespace != test.namespace || name != test.name || ok != test.ok {
			t.Errorf("ParseServiceName(%q) = %q, %q, %t, want %q, %q, %t",
				test.serverName, namespace, name, ok, test.namespace, test.name, test.ok)
		}
	}
}

// answering returns a handler that says who it is.
func answering(who string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, who) })
}

// start runs the forwarder before three backends and returns its address.
func start(t *testing.T) string {
	t.Helper()
	api := httptest.NewTLSServer(answering("API server"))
	t.Cleanup(api.Close)
	service := httptest.NewTLSServer(answering("service"))
	t.Cleanup(service.Close)
	registry := httptest.NewServer(answering("registry"))
	t.Cleanup(registry.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, listener, Backends{
			APIServer: api.Listener.Addr().String(),
			Registry:  registry.Listener.Addr().String(),
			Service: func(_ context.Context, namespace, name string) (string, error) {
				if namespace != "vcluster-alice" || name != "alice" {
					return "", errors.New("none of that name")
				}
				return service.Listener.Addr().String(), nil
			},
			Passed: func(_ context.Context, serverName string) (namespace, name string, ok bool) {
				return "vcluster-alice", "alice", serverName == "alice.spaces.example.com"
			},
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Serve ended with %v", err)
		}
	})
	return listener.Addr().String()
}

func get(url, serverName string) (string, error) {
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{ServerName: serverName, InsecureSkipVerify: true},
	}}
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestConnectionsAreRouted(t *testing.T) {
	address := start(t)
	for _, test := range []struct{ name, scheme, serverName, want string }{
		{"TLS without a server name reaches the API server", "https", "", "API server"},
		{"TLS that names the API server reaches it", "https", "kubernetes.default.svc", "API server"},
		{"TLS that names something else reaches the API server", "https", "example.com", "API server"},
		{"TLS that names a service reaches it", "https", "alice.vcluster-alice.svc", "service"},
		{"TLS that an Ingress passes reaches its service", "https", "alice.spaces.example.com", "service"},
		{"plain HTTP reaches the registry", "http", "", "registry"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := get(test.scheme+"://"+address, test.serverName)
			if err != nil || got != test.want {
				t.Errorf("answer %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestUnknownServiceClosesTheConnection(t *testing.T) {
	got, err := get("https://"+start(t), "bob.vcluster-bob.svc")
	if err == nil {
		t.Fatalf("answer %q, want a closed connection", got)
	}
	if !strings.Contains(err.Error(), "EOF") && !strings.Contains(err.Error(), "reset") {
		t.Errorf("error %v, want a closed connection", err)
	}
}
