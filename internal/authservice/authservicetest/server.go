// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authservicetest serves the provider of package authservice on the loopback interface, for tests.
package authservicetest

import (
	"context"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"

	"github.com/tantilium/cloud-runner/internal/authservice"
)

// Server is where a provider will answer. It is known before, so that others can be told of it.
type Server struct {
	Issuer string
	// Authority is the PEM certificate that is trusted for it.
	Authority string

	listener         net.Listener
	certificate, key string
}

// Listen takes an address, and makes a certificate for it in folder.
func Listen(ctx context.Context, folder string) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("auth.example.com", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Issuer: "https://" + listener.Addr().String(), Authority: string(certificate), listener: listener,
		certificate: filepath.Join(folder, "tls.crt"), key: filepath.Join(folder, "tls.key"),
	}
	for file, text := range map[string][]byte{s.certificate: certificate, s.key: key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Serve answers until ctx ends. The options need no issuer.
func (s *Server) Serve(ctx context.Context, o authservice.Options) error {
	o.Issuer = s.Issuer
	return authservice.Serve(ctx, s.listener, s.certificate, s.key, o)
}
