// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tantilium/cloud-runner/apiserver"
)

// replica is one kubeopera-api.
type replica struct {
	address string
	folder  string
	end     context.CancelFunc
	ended   chan error
}

// startReplica serves until end is called.
func startReplica(folder, kubeconfig string) (*replica, error) {
	listener, err := (&net.ListenConfig{}).Listen(backgroundContext, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	o := apiserver.NewOptions()
	o.Kubeconfig = kubeconfig
	o.Authentication.RemoteKubeConfigFile, o.Authorization.RemoteKubeConfigFile = kubeconfig, kubeconfig
	o.SecureServing.Listener, o.SecureServing.BindPort = listener, 0
	o.ServingSecret = "kubeopera-core/kubeopera-api-serving"
	if o.ServingFolder, err = os.MkdirTemp(folder, "serving"); err != nil {
		return nil, err
	}
	o.Run.ShutdownDelayDuration = 0
	if err := o.Validate(); err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	r := &replica{address: listener.Addr().String(), folder: o.ServingFolder, end: end, ended: make(chan error, 1)}
	go func() { r.ended <- apiserver.Run(ctx, o) }()
	return r, nil
}

// service stands in for a Service of the cluster: it leads each connection to the next replica.
type service struct {
	listener net.Listener
	next     atomic.Uint64

	mu       sync.Mutex
	replicas []string
	open     map[net.Conn]string
}

func startService() (*service, error) {
	listener, err := (&net.ListenConfig{}).Listen(backgroundContext, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{listener: listener, open: map[net.Conn]string{}}
	go s.accept()
	return s, nil
}

func (s *service) port() int { return s.listener.Addr().(*net.TCPAddr).Port } //nolint:forcetypeassert // it listens on TCP

// lead sets the replicas that new connections are led to. Connections to others are cut, as when a pod is killed.
func (s *service) lead(replicas ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = replicas
	for conn, address := range s.open {
		if !slices.Contains(replicas, address) {
			_ = conn.Close()
		}
	}
}

func (s *service) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		go s.pass(conn)
	}
}

func (s *service) pass(conn net.Conn) {
	address := s.enter(conn)
	defer s.leave(conn)
	if address == "" {
		return
	}
	to, err := (&net.Dialer{}).DialContext(backgroundContext, "tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() {
		_, _ = io.Copy(to, conn)
		_ = to.Close()
	}()
	_, _ = io.Copy(conn, to)
}

func (s *service) enter(conn net.Conn) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.replicas) == 0 {
		return ""
	}
	address := s.replicas[s.next.Add(1)%uint64(len(s.replicas))]
	s.open[conn] = address
	return address
}

func (s *service) leave(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
	_ = conn.Close()
}
