// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Command probe is what test pods run: an HTTP server to be reached, and a client that reaches or resolves one. Debian's
// static busybox cannot resolve names, so this takes its place.
//
//	probe serve [ADDRESS]   answers every request with the pod's host name (default :8080), and sends datagrams back, until SIGTERM
//	probe get URL           prints the body; exits 1 on no answer within 5 s or a status from 400 up
//	probe resolve NAME      prints the addresses of NAME, one a line; exits 1 if there are none, or no answer within 12 s
//	probe reach TARGET...   says of each target, tcp/HOST:PORT or udp/HOST:PORT, whether it is open or closed; exits 0
//	probe window TARGET     tries a target for 15 s from its start on, and says when it was answered last
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	timeout = 5 * time.Second
	// lookupTimeout leaves room for a second question: the first may be lost while a DNS Service has just come up.
	lookupTimeout = 12 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && args[0] == "serve":
		return serve(ctx, ":8080")
	case len(args) == 2 && args[0] == "serve":
		return serve(ctx, args[1])
	case len(args) == 2 && args[0] == "get":
		return get(ctx, args[1], out)
	case len(args) == 2 && args[0] == "resolve":
		return resolve(ctx, args[1], out)
	case len(args) > 1 && args[0] == "reach":
		return reach(ctx, args[1:], out)
	case len(args) == 2 && args[0] == "window":
		return window(ctx, args[1], out)
	}
	return errors.New("usage: probe serve [ADDRESS] | get URL | resolve NAME | reach TARGET... | window TARGET")
}

func serve(ctx context.Context, address string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr:              address,
		ReadHeaderTimeout: timeout,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, host)
		}),
	}
	datagrams, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	go echo(datagrams)
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	fmt.Println("serving on", address)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(server.Close(), datagrams.Close())
	}
}

func get(ctx context.Context, url string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(out, response.Body); err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s answered %s", url, response.Status)
	}
	return nil
}

func resolve(ctx context.Context, name string, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, name)
	if err != nil {
		return err
	}
	for _, address := range addresses {
		fmt.Fprintln(out, address)
	}
	return nil
}
