// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubeopera-api serves the view: to each caller the CloudSpaces of the caller's own tenant.
package main

import (
	"os"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/component-base/cli"

	"github.com/tantilium/cloud-runner/apiserver"
)

func main() {
	options := apiserver.NewOptions()
	command := &cobra.Command{
		Use:   "kubeopera-api",
		Short: "Serves view.kubeopera.io to the host cluster's kube-apiserver",
		Long: `kubeopera-api is an aggregated API server. It shows each caller the CloudSpaces of the tenant in the caller's token, and passes on
to them what is written. It stores nothing.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.Validate(); err != nil {
				return err
			}
			return apiserver.Run(command.Context(), options)
		},
	}
	options.AddFlags(command.Flags())
	command.SetContext(genericapiserver.SetupSignalContext())
	os.Exit(cli.Run(command))
}
