// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/archive"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/cluster"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/supervisor"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/toolchain"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "hostcluster",
		Short: "A real single-node Kubernetes cluster with Flux, from Go modules and Debian packages",
		Long: `A real single-node Kubernetes cluster with Flux, from Go modules and Debian packages.

Each clone of the repository has a cluster of its own. It lives in namespaces of its own (network, mounts, processes), keeps
its state under .local/ of the clone, and is reached from the machine through one port on 127.0.0.1.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	clone := root.PersistentFlags().String("clone", "", "folder of the clone, or one inside it (default: the working directory)")
	root.AddCommand(
		buildCommand(clone), upCommand(clone), downCommand(clone), statusCommand(clone), envCommand(clone),
		kubeconfigCommand(clone), imageCommand(clone), chartCommand(clone), execCommand(clone), restartCommand(clone),
		snapshotCommand(clone), restoreCommand(clone),
	)
	root.AddCommand(namespaceCommands()...)
	return root
}

// run opens the cluster, whose words for a person go to the standard output, and hands it to do.
func run(clone *string, do func(*cobra.Command, *cluster.Cluster, []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		opened, err := cluster.Open(command.Context(), *clone, command.OutOrStdout())
		if err != nil {
			return err
		}
		return do(command, opened, args)
	}
}

func buildCommand(clone *string) *cobra.Command {
	return &cobra.Command{
		Use:   "build",
		Short: "Build every program, image and chart into the cache, without starting anything",
		Long:  "Build every program, image and chart into the cache under ~/.cache (or XDG_CACHE_HOME), shared by all clones.",
		Args:  cobra.NoArgs,
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, _ []string) error {
			return c.Build(command.Context())
		}),
	}
}

func upCommand(clone *string) *cobra.Command {
	var options cluster.UpOptions
	command := &cobra.Command{
		Use:   "up",
		Short: "Bring the cluster up, from whatever state it is in, and wait until it is ready",
		Args:  cobra.NoArgs,
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, _ []string) error {
			return c.Up(command.Context(), options)
		}),
	}
	command.Flags().BoolVar(&options.Fsync, "etcd-fsync", false,
		"let etcd write durably, as production does: for measurements; counts when the cluster is started")
	return command
}

func downCommand(clone *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "End the cluster and remove all of it except its logs",
		Args:  cobra.NoArgs,
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, _ []string) error {
			return c.Down(command.Context())
		}),
	}
}

func statusCommand(clone *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Tell what runs and what is not ready; the exit code is 0 only if all is",
		Args:  cobra.NoArgs,
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, _ []string) error {
			return c.Status(command.Context())
		}),
	}
}

func envCommand(clone *string) *cobra.Command {
	return &cobra.Command{
		Use:   "env",
		Short: "Print the environment for a shell that uses the cluster",
		Long: `Print the environment for a shell that uses the cluster:

  eval "$(hostcluster env)"

KUBECONFIG                  the administrator's kubeconfig
PATH                        with kubectl, helm, ctr and every other program in front
KUBEBUILDER_ASSETS          folder with kube-apiserver and etcd, for tests that start their own
HOSTCLUSTER_REGISTRY        the chart registry as pods and Flux name it (plain HTTP)
HOSTCLUSTER_REGISTRY_LOCAL  the same registry from the machine (plain HTTP); empty while the cluster is down
HOSTCLUSTER_CACHE           folder of programs, images, charts and Flux's definitions`,
		Args: cobra.NoArgs,
		RunE: run(clone, func(_ *cobra.Command, c *cluster.Cluster, _ []string) error {
			c.Environment()
			return nil
		}),
	}
}

func kubeconfigCommand(clone *string) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use:   "kubeconfig HOST-NAME",
		Short: "Print a kubeconfig for a CloudSpace that works from the machine",
		Long: `Print a kubeconfig for the CloudSpace with that host name (status.hostName) that works from the machine.
It reads Secret kubeopera-system/cloudspace-HOST-NAME-kubeconfig and leads it through the cluster's port.`,
		Args: cobra.ExactArgs(1),
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, args []string) error {
			return c.WriteCloudSpaceKubeconfig(command.Context(), args[0], file)
		}),
	}
	command.Flags().StringVarP(&file, "output", "o", "", "write to this file, readable by its owner only")
	return command
}

func imageCommand(clone *string) *cobra.Command {
	var entrypoint, user string
	var shell bool
	load := &cobra.Command{
		Use:   "load REF SOURCE:TARGET...",
		Short: "Make a one-layer image of files and bring it into the running cluster",
		Example: `  hostcluster image load ghcr.io/tantilium/tenant-controller:dev \
    --entrypoint '["/tenant-controller"]' --user 65532:65532 bin/tenant-controller:/tenant-controller`,
		Args: cobra.MinimumNArgs(2),
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, args []string) error {
			words, err := parseEntrypoint(entrypoint)
			if err != nil {
				return err
			}
			image := archive.Image{Ref: args[0], Entrypoint: words, User: user}
			if shell {
				image.Files = archive.Shell(toolchain.Busybox)
			}
			return c.LoadImage(command.Context(), image, args[1:])
		}),
	}
	load.Flags().StringVar(&entrypoint, "entrypoint", "", `the image's entry point, a JSON list such as '["/server"]'`)
	load.Flags().StringVar(&user, "user", "", "the image's user and group in digits, such as 65532:65532 (default: root)")
	load.Flags().BoolVar(&shell, "shell", false, "add a shell and the usual commands under /bin")
	image := &cobra.Command{Use: "image", Short: "Bring images into the cluster"}
	image.AddCommand(load)
	return image
}

func parseEntrypoint(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var words []string
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		return nil, fmt.Errorf(`--entrypoint %q is no JSON list of texts such as '["/server"]': %w`, text, err)
	}
	return words, nil
}

func chartCommand(clone *string) *cobra.Command {
	chart := &cobra.Command{Use: "chart", Short: "Bring charts into the cluster's registry"}
	chart.AddCommand(&cobra.Command{
		Use:   "push FOLDER|FILE.tgz",
		Short: "Push a chart into the running cluster's registry",
		Args:  cobra.ExactArgs(1),
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, args []string) error {
			return c.PushChart(command.Context(), args[0])
		}),
	})
	return chart
}

func execCommand(clone *string) *cobra.Command {
	return &cobra.Command{
		Use:     "exec -- COMMAND [ARGUMENT...]",
		Short:   "Run a command inside the cluster's namespaces, such as ctr, iptables or curl",
		Example: "  hostcluster exec -- ctr containers ls\n  hostcluster exec -- iptables-save",
		Args:    cobra.MinimumNArgs(1),
		RunE: run(clone, func(_ *cobra.Command, c *cluster.Cluster, args []string) error {
			return c.Exec(args)
		}),
	}
}

func restartCommand(clone *string) *cobra.Command {
	return &cobra.Command{
		Use:     "restart DAEMON",
		Short:   "Kill a daemon as a crash would, and wait until it runs again",
		Long:    "Kill a daemon, which the supervisor then starts again, and wait until it runs. \"status\" lists the daemons.",
		Example: "  hostcluster restart kube-apiserver",
		Args:    cobra.ExactArgs(1),
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, args []string) error {
			return c.Restart(command.Context(), args[0])
		}),
	}
}

func snapshotCommand(clone *string) *cobra.Command {
	return &cobra.Command{
		Use:   "snapshot",
		Short: "Keep what etcd has now, for \"restore\"",
		Args:  cobra.NoArgs,
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, _ []string) error {
			return c.Snapshot(command.Context())
		}),
	}
}

func restoreCommand(clone *string) *cobra.Command {
	return &cobra.Command{
		Use:   "restore",
		Short: "Bring back what etcd had at the last \"snapshot\", while containers run on",
		Long: `Bring back what etcd had at the last "snapshot", and wait until the API server serves it. etcd and the API server are killed for
that; nothing else is: nodes and their containers know what came after the snapshot, and the cluster does not.`,
		Args: cobra.NoArgs,
		RunE: run(clone, func(command *cobra.Command, c *cluster.Cluster, _ []string) error {
			return c.Restore(command.Context())
		}),
	}
}

// namespaceCommands are the processes that "up" starts.
func namespaceCommands() []*cobra.Command {
	var settings supervisor.Settings
	command := func(name string, do func(supervisor.Settings) error) *cobra.Command {
		c := &cobra.Command{
			Use:    name,
			Hidden: true,
			Args:   cobra.NoArgs,
			RunE: func(command *cobra.Command, _ []string) error {
				settings.Root = command.Flag("clone").Value.String()
				if os.Getppid() != 0 && name == supervisor.InitCommand {
					return fmt.Errorf("%s is started by \"up\" only", name)
				}
				return do(settings)
			},
		}
		c.Flags().StringVar(&settings.Cache, "cache", "", "folder of the programs")
		c.Flags().BoolVar(&settings.Fsync, "etcd-fsync", false, "let etcd write durably")
		return c
	}
	return []*cobra.Command{
		command(supervisor.InitCommand, supervisor.RunInit), command(supervisor.SuperviseCommand, supervisor.RunSupervisor),
	}
}
