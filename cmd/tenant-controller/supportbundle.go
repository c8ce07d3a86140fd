// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/supportbundle"
)

func supportBundleCommand() *cobra.Command {
	var tenant, file string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "support-bundle",
		Short: "Collect the platform's state, events and logs into an archive, without secrets",
		Long: "Collect Tenants, CloudSpaces, TenantQuotas, Flux's releases and sources, pods, events, quotas, and the logs of the operator,\n" +
			"Flux and control planes of the cluster of KUBECONFIG into one archive for those who help from elsewhere.\n\n" +
			"Of Secrets there are names, keys and sizes. What looks like a credential in any text is replaced, values of environment variables\n" +
			"are left out, and logs and command lines of what tenants run are not collected. Look into it all the same before you pass it on.\n\n" +
			"What cannot be collected is told in errors.txt of the archive. Without --tenant, CloudSpaces that are not well are looked into, up\n" +
			"to 100, and five others. Wants to read everything that it collects: an administrator's kubeconfig will do.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			now := clock.RealClock{}.Now()
			if file == "" {
				file = "support-bundle-" + now.UTC().Format("20060102-150405") + ".tar.gz"
			}
			if _, ok := names.TenantID(names.TenantNamespace(tenant)); tenant != "" && !ok {
				return fmt.Errorf("%q is not a tenant id", tenant)
			}
			if err := writeBundle(ctx, file, supportbundle.Options{Tenant: tenant, Version: version, Progress: cmd.ErrOrStderr(), Now: now}); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), file)
			return err
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "id of the only tenant to collect; all when empty")
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write; support-bundle-<time>.tar.gz when empty")
	cmd.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "what is not collected by then is left out")
	return cmd
}

// writeBundle leaves no half a bundle under the name. Only the caller may read it.
func writeBundle(ctx context.Context, file string, o supportbundle.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no cluster to look at (KUBECONFIG is %q): %w", os.Getenv("KUBECONFIG"), err)
	}
	partial, err := os.CreateTemp(filepath.Dir(file), ".support-bundle-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(partial.Name()) }()
	if err := errors.Join(supportbundle.Collect(ctx, config, partial, o), partial.Close()); err != nil {
		return err
	}
	return os.Rename(partial.Name(), file)
}
