// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Command tenant-controller provisions Tenants and CloudSpaces on a host cluster.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/internal/preflight"
)

// version is set where images are built.
var version = "devel"

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "tenant-controller:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "tenant-controller",
		Short:         "Provisions Tenants and CloudSpaces on a host cluster",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(runCommand(), preflightCommand(), supportBundleCommand())
	return root
}

func runCommand() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the controllers until a signal comes",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func preflightCommand() *cobra.Command {
	var platform string
	cmd := &cobra.Command{
		Use:   "preflight",
		Short: "Check whether a cluster can be a host cluster, and say what is missing",
		Long: "Check whether the cluster of KUBECONFIG can be a host cluster: its version, admission policies, Flux, a default\n" +
			"StorageClass, the rights of the caller to install there, and what a PlatformConfig says of it. Prints one line for each check; exits with 1 when something is missing.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return check(cmd.Context(), platform) },
	}
	cmd.Flags().StringVar(&platform, "config", "", "file with a PlatformConfig to check first")
	return cmd
}

func check(ctx context.Context, platform string) error {
	var parsed *configv1alpha1.PlatformConfig
	if platform != "" {
		var err error
		if parsed, err = configv1alpha1.Load(platform); err != nil {
			return fmt.Errorf("the PlatformConfig is not usable: %w", err)
		}
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no cluster to check (KUBECONFIG is %q): %w", os.Getenv("KUBECONFIG"), err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return preflight.Run(ctx, client, parsed, os.Stdout)
}
