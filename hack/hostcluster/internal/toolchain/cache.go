// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// product is the folder's name under the user's cache folder.
const product = "tantilium-cloud-runner"

// Cache is the folder that holds one version of everything built.
type Cache struct {
	// Dir has the folders bin, images, charts and crds once it is complete. It does not exist before.
	Dir string
	// tools is the folder of the tools module that it is built from.
	tools string
	// goRelease is the Go release in use.
	goRelease string
}

// Find says where the binaries for the clone at root belong. They need not be there yet.
func Find(ctx context.Context, root string) (Cache, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOOS", "GOARCH").Output()
	if err != nil {
		return Cache{}, fmt.Errorf("ask Go for its version: %w", err)
	}
	goRelease := strings.Join(strings.Fields(string(out)), " ")
	tools := filepath.Join(root, "hack", "hostcluster", "tools")
	key, err := cacheKey(goRelease, tools)
	if err != nil {
		return Cache{}, err
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return Cache{}, fmt.Errorf("find the cache folder: set HOME or XDG_CACHE_HOME: %w", err)
	}
	return Cache{Dir: filepath.Join(base, product, key), tools: tools, goRelease: goRelease}, nil
}

// Complete says whether everything is built. The folder gets its name last, so a build that was killed does not count.
func (c Cache) Complete() bool {
	_, err := os.Stat(c.Dir)
	return err == nil
}

// Bin is the folder of the binaries. It serves as KUBEBUILDER_ASSETS.
func (c Cache) Bin() string { return filepath.Join(c.Dir, "bin") }

// CRDs is the folder of Flux's custom resource definitions.
func (c Cache) CRDs() string { return filepath.Join(c.Dir, "crds") }

// Chart is the packaged vCluster chart.
func (c Cache) Chart() string { return filepath.Join(c.Dir, "charts", chartFile()) }

// Archives lists the image archives by name of the image, in the order in which a starting cluster needs them.
func (c Cache) Archives() []Archive {
	archives := make([]Archive, 0, len(images("")))
	for _, image := range images("") {
		archives = append(archives, Archive{Ref: image.Ref, Path: filepath.Join(c.Dir, "images", archiveName(image.Ref))})
	}
	return archives
}

// Archive is an image and the file that holds it.
type Archive struct{ Ref, Path string }

// archiveName makes a file name of an image name.
func archiveName(ref string) string {
	return strings.NewReplacer("/", "_", ":", "_").Replace(ref) + ".tar"
}

// lock keeps a second clone that needs the same binaries from building them at the same time: it waits, saying so on out,
// until the first is done, and then finds them.
func (c Cache) lock(ctx context.Context, out io.Writer) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(c.Dir), 0o755); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	file, err := os.OpenFile(c.Dir+".lock", os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock of the cache: %w", err)
	}
	said := false
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock the cache: %w", err), file.Close())
		}
		if !said {
			fmt.Fprintln(out, "another clone is building the same binaries: waiting for it")
			said = true
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), file.Close())
		case <-time.After(time.Second):
		}
	}
}
