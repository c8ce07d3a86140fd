// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/archive"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
)

// imports is how many images are imported at a time.
const imports = 2

// importImages brings every image of the cache into containerd, unless it is there from the same cache already.
func (c *Cluster) importImages(ctx context.Context) error {
	if err := c.awaitContainerd(ctx); err != nil {
		return err
	}
	imported := c.readImported()
	if imported.Cache != c.cache.Dir {
		imported = importedImages{Cache: c.cache.Dir}
	}
	results := make(chan string)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(imports)
	go func() {
		defer close(results)
		for _, image := range c.cache.Archives() {
			if imported.has(image.Ref) {
				continue
			}
			group.Go(func() error {
				if err := c.importArchive(ctx, image.Path); err != nil {
					return err
				}
				results <- image.Ref
				return nil
			})
		}
		// The error is taken below: this only waits for the last result.
		_ = group.Wait()
	}()
	var errs []error
	for ref := range results {
		imported.Refs = append(imported.Refs, ref)
		errs = append(errs, c.writeImported(imported))
	}
	return errors.Join(append(errs, group.Wait())...)
}

func (c *Cluster) awaitContainerd(ctx context.Context) error {
	return poll(ctx, func(ctx context.Context) (bool, error) {
		if _, err := c.first(); err != nil {
			return false, err
		}
		return c.ctr(ctx, "version") == nil, nil
	})
}

func (c *Cluster) importArchive(ctx context.Context, path string) error {
	if err := c.ctr(ctx, "images", "import", path); err != nil {
		return fmt.Errorf("import image: %w", err)
	}
	return nil
}

// ctr speaks to the cluster's containerd from outside of its namespaces.
func (c *Cluster) ctr(ctx context.Context, args ...string) error {
	pid, err := c.first()
	if err != nil {
		return err
	}
	args = append([]string{"--address", inside(pid, node.ContainerdSocket), "--namespace", "k8s.io"}, args...)
	if out, err := exec.CommandContext(ctx, filepath.Join(c.programs(), "ctr"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ctr %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// LoadImage makes a one-layer image of files of the machine, each given as SOURCE:TARGET, and brings it into the running
// cluster. An image of that name is replaced; pods that run keep what they have.
func (c *Cluster) LoadImage(ctx context.Context, image archive.Image, files []string) error {
	for _, pair := range files {
		source, target, ok := strings.Cut(pair, ":")
		if !ok || source == "" || !strings.HasPrefix(target, "/") {
			return fmt.Errorf("%q is not SOURCE:TARGET with an absolute TARGET", pair)
		}
		image.Files = append(image.Files, archive.File{Source: source, Target: target})
	}
	folder, err := os.MkdirTemp("", "hostcluster-image-")
	if err != nil {
		return fmt.Errorf("make folder for the image: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "image.tar")
	if err := archive.Write(image, path); err != nil {
		return err
	}
	if err := c.importArchive(ctx, path); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "image %s is in the cluster\n", image.Ref)
	return nil
}

// importedImages remembers what containerd holds, and from which cache.
type importedImages struct {
	Cache string   `json:"cache"`
	Refs  []string `json:"refs"`
}

func (i importedImages) has(ref string) bool { return slices.Contains(i.Refs, ref) }

// readImported takes an unreadable file for an empty one: then all is imported again.
func (c *Cluster) readImported() importedImages {
	var imported importedImages
	data, err := os.ReadFile(c.layout.Imported())
	if err == nil && json.Unmarshal(data, &imported) != nil {
		return importedImages{}
	}
	return imported
}

func (c *Cluster) writeImported(imported importedImages) error {
	data, err := json.Marshal(imported)
	if err != nil {
		return fmt.Errorf("encode list of images: %w", err)
	}
	if err := os.WriteFile(c.layout.Imported(), data, 0o644); err != nil {
		return fmt.Errorf("write list of images: %w", err)
	}
	return nil
}
