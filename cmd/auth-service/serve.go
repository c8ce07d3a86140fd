// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/authservice"
)

func serveCommand() *cobra.Command {
	o := authservice.Options{Clock: clock.RealClock{}}
	var listen, certificates string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer until a signal comes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logs := slog.NewJSONHandler(os.Stderr, nil)
			slog.SetDefault(slog.New(logs))
			ctrl.SetLogger(logr.FromSlogHandler(logs))
			var err error
			if o.Client, err = newClient(); err != nil {
				return err
			}
			return serve(cmd.Context(), listen, certificates, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Issuer, "issuer", "", "URL under which kube-apiserver and people reach this service: https://HOST or https://HOST:PORT")
	flags.StringVar(&listen, "listen", ":8443", "address to listen on, with HTTPS")
	flags.StringVar(&certificates, "certificates", "/etc/auth-service/tls", "folder with tls.crt and tls.key; they are read again when they change")
	flags.DurationVar(&o.Lifetimes.Token, "token-lifetime", 10*time.Minute, "how long a token counts, an hour at most")
	flags.DurationVar(&o.Lifetimes.Session, "session-lifetime", 12*time.Hour, "how long tokens are renewed without the password")
	flags.DurationVar(&o.Lifetimes.Key, "key-lifetime", 30*24*time.Hour, "how long tokens are signed with one key")
	_ = cmd.MarkFlagRequired("issuer")
	return cmd
}

func serve(ctx context.Context, listen, certificates string, o authservice.Options) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if err != nil {
		return err
	}
	return authservice.Serve(ctx, listener, filepath.Join(certificates, "tls.crt"), filepath.Join(certificates, "tls.key"), o)
}

// newClient reads what is there now, with the rights of the ServiceAccount or of KUBECONFIG.
func newClient() (client.Client, error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 50, 100
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	return client.New(config, client.Options{Scheme: known})
}
