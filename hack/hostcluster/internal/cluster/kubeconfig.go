// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"net/url"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	// secretNamespace and secretKey are where the platform keeps a CloudSpace's kubeconfig.
	secretNamespace = "kubeopera-system"
	secretKey       = "config"
)

// CloudSpaceKubeconfig returns the kubeconfig of the CloudSpace with that host name, changed so that it works from the
// machine: through the cluster's loopback port, which finds the CloudSpace by the TLS server name.
func (c *Cluster) CloudSpaceKubeconfig(ctx context.Context, hostName string) ([]byte, error) {
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	name := "cloudspace-" + hostName + "-kubeconfig"
	// A CloudSpace with an endpoint outside the cluster has this one too, which leads to its Service.
	secret, err := client.CoreV1().Secrets(secretNamespace).Get(ctx, name+"-internal", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret, err = client.CoreV1().Secrets(secretNamespace).Get(ctx, name, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("no Secret %s/%s: is %q the host name of a CloudSpace that is ready?", secretNamespace, name, hostName)
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of %s: %w", hostName, err)
	}
	data, ok := secret.Data[secretKey]
	if !ok {
		return nil, fmt.Errorf("key %[3]s is missing in Secret %[1]s/%[2]s", secretNamespace, name, secretKey)
	}
	address, err := c.address()
	if err != nil {
		return nil, err
	}
	return throughForwarder(data, address)
}

// throughForwarder leads every cluster of a kubeconfig to the loopback address, under the server name it had.
func throughForwarder(data []byte, address string) ([]byte, error) {
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	for name, cluster := range config.Clusters {
		server, err := url.Parse(cluster.Server)
		if err != nil {
			return nil, fmt.Errorf("read the server of cluster %q in the kubeconfig: %w", name, err)
		}
		if server.Hostname() == "" {
			return nil, fmt.Errorf("server %q of cluster %q in the kubeconfig names no host", cluster.Server, name)
		}
		if cluster.TLSServerName == "" {
			cluster.TLSServerName = server.Hostname()
		}
		cluster.Server = "https://" + address
	}
	out, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig: %w", err)
	}
	return out, nil
}

// WriteCloudSpaceKubeconfig writes what CloudSpaceKubeconfig returns to a file that only its owner may read, or to the
// cluster's output if file is empty.
func (c *Cluster) WriteCloudSpaceKubeconfig(ctx context.Context, hostName, file string) error {
	data, err := c.CloudSpaceKubeconfig(ctx, hostName)
	if err != nil {
		return err
	}
	if file == "" {
		_, err := c.out.Write(data)
		return err
	}
	// A file that exists keeps its mode when it is written, so it must go first.
	if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("replace kubeconfig: %w", err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}
