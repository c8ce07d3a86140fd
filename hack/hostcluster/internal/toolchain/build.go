// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/archive"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/progress"
)

// linkers bounds how many parts are in work at a time: one that compiles and one that is linked.
const linkers = 2

// Ensure builds whatever of the cache is missing and tells of it on out. It returns at once if the cache is complete. A build
// that was interrupted goes on with the part where it stopped.
func (c Cache) Ensure(ctx context.Context, out io.Writer) error {
	if c.Complete() {
		return nil
	}
	release, err := c.lock(ctx, out)
	if err != nil {
		return err
	}
	defer release()
	if c.Complete() {
		return nil
	}
	fmt.Fprintf(out, "building the cluster's programs into %s (once for each version; ten minutes or more on two cores if Go has compiled none of it before)\n", c.Dir)
	partial := c.Dir + ".partial"
	for _, folder := range []string{"bin", "images", "charts", "crds"} {
		if err := os.MkdirAll(filepath.Join(partial, folder), 0o755); err != nil {
			return fmt.Errorf("make the cache folder: %w", err)
		}
	}
	printer := progress.New(out, len(parts())+len(images(""))+2, time.Now)
	work := build{cache: c, folder: partial, printer: printer}
	if err := work.all(ctx); err != nil {
		return err
	}
	if err := os.Rename(partial, c.Dir); err != nil {
		return fmt.Errorf("finish the cache: %w", err)
	}
	printer.Total("all programs, images and charts built")
	return nil
}

// build is one run into a folder that becomes the cache when all is done.
type build struct {
	cache   Cache
	folder  string
	printer *progress.Printer
}

func (b build) all(ctx context.Context) error {
	if err := b.binaries(ctx); err != nil {
		return err
	}
	if err := b.printer.Part(ctx, "vCluster chart", nil, b.chart); err != nil {
		return err
	}
	if err := b.printer.Part(ctx, "Flux custom resource definitions", nil, b.crds); err != nil {
		return err
	}
	for _, image := range images(filepath.Join(b.folder, "bin")) {
		path := filepath.Join(b.folder, "images", archiveName(image.Ref))
		write := func(context.Context) error { return archive.Write(image, path) }
		if err := b.printer.Part(ctx, "image "+image.Ref, nil, write); err != nil {
			return err
		}
	}
	return nil
}

// binaries compiles one part after another, but starts the next while one is linked: linking keeps one core busy only.
func (b build) binaries(ctx context.Context) error {
	compiler := make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(linkers)
	for _, part := range parts() {
		select {
		case compiler <- struct{}{}:
		case <-ctx.Done():
			return group.Wait()
		}
		group.Go(func() error { return b.binary(ctx, part, compiler) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return b.links()
}

// binary builds one part and gives back the token in compiler when the compiling is done.
func (b build) binary(ctx context.Context, part part, compiler chan struct{}) error {
	run := newCompilation(part, func() { <-compiler })
	defer run.releaseCompiler()
	target := filepath.Join(b.folder, "bin", part.Name)
	if _, err := os.Stat(target); err == nil {
		b.printer.Skip(part.Name, "built before")
		return nil
	}
	return b.printer.Part(ctx, part.Name, run.detail, func(ctx context.Context) error {
		if err := run.build(ctx, b.cache.tools, target+".partial"); err != nil {
			return err
		}
		return os.Rename(target+".partial", target)
	})
}

// links gives the Kubernetes commands their names.
func (b build) links() error {
	for _, command := range kubeCommands {
		err := os.Symlink(kubeBinary, filepath.Join(b.folder, "bin", command))
		if err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("name command: %w", err)
		}
	}
	return nil
}
