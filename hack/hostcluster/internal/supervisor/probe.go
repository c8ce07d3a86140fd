// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/node"
	"github.com/tantilium/cloud-runner/hack/hostcluster/internal/pki"
)

const (
	// probeInterval is how often a gate's condition is looked at, probeTimeout how long one look may take.
	probeInterval = 100 * time.Millisecond
	probeTimeout  = 5 * time.Second
)

// probe looks at the cluster from inside its namespaces.
type probe struct {
	node   string
	client kubernetes.Interface
}

func newProbe(nodeName string) (*probe, error) {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(node.State, "pki", pki.Admin+".kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("read the administrator's kubeconfig: %w", err)
	}
	config.Timeout = probeTimeout
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &probe{node: nodeName, client: client}, nil
}

// service finds the address of the HTTPS port of a Service.
func (p *probe) service(ctx context.Context, namespace, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	service, err := p.client.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("find service: %w", err)
	}
	if net.ParseIP(service.Spec.ClusterIP) == nil {
		return "", fmt.Errorf("service %s/%s has no cluster address", namespace, name)
	}
	return net.JoinHostPort(service.Spec.ClusterIP, "443"), nil
}

// gates returns one channel for each gate, closed once its condition is met for the first time.
func (p *probe) gates(ctx context.Context) map[node.Gate]<-chan struct{} {
	return map[node.Gate]<-chan struct{}{
		node.EtcdServes:      await(ctx, etcdServes),
		node.ContainerdReady: await(ctx, containerdReady),
		node.APIServerReady:  await(ctx, p.apiServerReady),
		node.NodeRegistered:  await(ctx, p.nodeRegistered),
	}
}

func await(ctx context.Context, met func(context.Context) bool) <-chan struct{} {
	open := make(chan struct{})
	go func() {
		ticker := time.NewTicker(probeInterval)
		defer ticker.Stop()
		for {
			if met(ctx) {
				close(open)
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return open
}

func etcdServes(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, node.EtcdHealth, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func containerdReady(context.Context) bool {
	conn, err := net.DialTimeout("unix", node.ContainerdSocket, probeTimeout)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func (p *probe) apiServerReady(ctx context.Context) bool {
	_, err := p.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err == nil
}

func (p *probe) nodeRegistered(ctx context.Context) bool {
	found, err := p.client.CoreV1().Nodes().Get(ctx, p.node, metav1.GetOptions{})
	return err == nil && len(found.Status.Addresses) > 0
}
