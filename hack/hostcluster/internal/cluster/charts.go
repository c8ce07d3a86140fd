// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/toolchain"
)

// chartRepository is the folder of charts in the registry.
const chartRepository = "charts"

// PushChart pushes a chart, a folder or a package, into the cluster's registry. Pods find it under the URL that is printed.
func (c *Cluster) PushChart(ctx context.Context, chart string) error {
	folder, err := os.MkdirTemp("", "hostcluster-chart-")
	if err != nil {
		return fmt.Errorf("make folder for the chart: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	info, err := os.Stat(chart)
	if err != nil {
		return fmt.Errorf("find chart: %w", err)
	}
	if info.IsDir() {
		if _, err := c.helm(ctx, folder, "package", chart, "--destination", folder); err != nil {
			return err
		}
		packaged, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
		if err != nil {
			return fmt.Errorf("find the packaged chart: %w", err)
		}
		if len(packaged) != 1 {
			return fmt.Errorf("helm made %d packages of %s, one expected", len(packaged), chart)
		}
		chart = packaged[0]
	}
	return c.push(ctx, folder, chart)
}

func (c *Cluster) push(ctx context.Context, home, chart string) error {
	address, err := c.address()
	if err != nil {
		return err
	}
	out, err := c.helm(ctx, home, "push", chart, "oci://"+address+"/"+chartRepository, "--plain-http")
	if err != nil {
		return err
	}
	fmt.Fprint(c.out, strings.ReplaceAll(out, address, node.RegistryName))
	return nil
}

// helm runs helm with a home of its own, so that a person's settings and logins neither matter nor change.
func (c *Cluster) helm(ctx context.Context, home string, args ...string) (string, error) {
	helm := exec.CommandContext(ctx, filepath.Join(c.programs(), "helm"), args...)
	helm.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := helm.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", args[0], err, out)
	}
	return string(out), nil
}

// pushOwnChart pushes the vCluster chart, unless it is there, as soon as the registry answers.
func (c *Cluster) pushOwnChart(ctx context.Context) error {
	var there bool
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		if _, err := c.first(); err != nil {
			return false, err
		}
		var err error
		there, err = c.hasOwnChart(ctx)
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the registry: %w", err)
	}
	if there {
		return nil
	}
	return c.PushChart(ctx, c.cache.Chart())
}

// hasOwnChart asks the registry for the vCluster chart. It is an error if it does not answer.
func (c *Cluster) hasOwnChart(ctx context.Context) (bool, error) {
	address, err := c.address()
	if err != nil {
		return false, err
	}
	version := strings.TrimPrefix(toolchain.VCluster, "v")
	url := fmt.Sprintf("http://%s/v2/%s/vcluster/manifests/%s", address, chartRepository, version)
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return false, fmt.Errorf("ask the registry for the vCluster chart: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, fmt.Errorf("ask the registry for the vCluster chart: %w", err)
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK, nil
}
