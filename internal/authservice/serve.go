// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package authservice

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

const (
	// clientTime bounds how long a client may take to send a request and to read its answer, shutdownTime what is left when the
	// program ends.
	clientTime   = 30 * time.Second
	shutdownTime = 10 * time.Second
)

// Serve answers on the listener, with HTTPS alone, until ctx ends. Certificate and key are read again when their files change.
func Serve(ctx context.Context, listener net.Listener, certificate, key string, o Options) error {
	p, err := newProvider(o)
	if err != nil {
		return err
	}
	watcher, err := certwatcher.New(certificate, key)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: p.handler(), ReadTimeout: clientTime, WriteTimeout: clientTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		TLSConfig: &tls.Config{GetCertificate: watcher.GetCertificate, MinVersion: tls.VersionTLS12},
		ErrorLog:  slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return watcher.Start(ctx) })
	group.Go(func() error {
		p.keys.run(ctx)
		return nil
	})
	group.Go(func() error {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		return server.Shutdown(ending)
	})
	return group.Wait()
}
