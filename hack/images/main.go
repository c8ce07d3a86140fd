// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Command images builds the container images of the commands in cmd/, for several platforms, from scratch: a static binary, the
// certificates of public authorities, and nothing else. The same commit and the same Go give the same bytes. It needs no container
// engine, and no base image: it writes OCI images itself, into a folder or into a registry.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	release
	registry  string
	platforms []string
	push      bool
	folder    string
}

func newCommand() *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:           "images --registry HOST/PATH [flags] COMMAND...",
		Short:         "Build the container images of commands, and push them",
		Args:          cobra.MinimumNArgs(1),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, commands []string) error {
			for _, command := range commands {
				reference, err := o.make(cmd.Context(), command)
				if err != nil {
					return fmt.Errorf("image of %s: %w", command, err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), reference)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.registry, "registry", "", "host and path in front of the commands' names, such as ghcr.io/tantilium")
	flags.StringVar(&o.version, "version", "devel", "version in the binary, the labels, and the tag")
	flags.StringVar(&o.revision, "revision", "", "commit, for the labels")
	flags.Int64Var(&o.created, "created", 0, "time of the commit in seconds since 1970, for the labels")
	flags.StringVar(&o.source, "source", "../..", "folder of the module with cmd/")
	flags.StringSliceVar(&o.platforms, "platforms", []string{"linux/amd64", "linux/arm64"}, "platforms")
	flags.BoolVar(&o.push, "push", false, "push to the registry, with the credentials of the Docker configuration")
	flags.StringVar(&o.folder, "folder", "", "folder for an OCI layout of each image; needed without --push")
	_ = cmd.MarkFlagRequired("registry")
	return cmd
}

// make builds one command for all platforms, puts the image where it belongs and returns its reference with the digest.
func (o options) make(ctx context.Context, command string) (string, error) {
	tag, err := o.tag(command)
	if err != nil {
		return "", err
	}
	var images []platformImage
	for _, text := range o.platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return "", err
		}
		image, err := o.build(ctx, command, *platform)
		if err != nil {
			return "", fmt.Errorf("%s: %w", text, err)
		}
		images = append(images, platformImage{*platform, image})
	}
	index, err := o.index(command, images)
	if err != nil {
		return "", err
	}
	return o.publish(ctx, command, tag, index)
}
