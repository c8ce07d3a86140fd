// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Keeper keeps the certificate of one API server.
type Keeper struct {
	// Client reads and writes the Secret, Dynamic the APIService.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Secret is where certificates are shared. It must be there, and may be empty: a server that could make Secrets could make itself tokens.
	Secret types.NamespacedName
	// APIService is what kube-apiserver knows the server by.
	APIService string
	// Names that kube-apiserver calls the server by.
	Names []string
	// Folder is where this replica keeps what it serves with: tls.crt and tls.key.
	Folder string
	Clock  clock.PassiveClock
}

// looks is how often certificates are looked at.
const looks = time.Minute

// maxTries bounds how often a pass is tried that another replica was ahead of.
const maxTries = 5

var apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}

// CertFile and KeyFile are what to serve with. They are there once Prepare has returned.
func (k *Keeper) CertFile() string { return filepath.Join(k.Folder, keyLeaf) }

// KeyFile goes with CertFile.
func (k *Keeper) KeyFile() string { return filepath.Join(k.Folder, keyLeafKey) }

// Prepare makes what is needed to begin. It tries until ctx ends.
func (k *Keeper) Prepare(ctx context.Context) error {
	backoff := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 10 * time.Second}
	for {
		err := k.Keep(ctx)
		if err == nil {
			return nil
		}
		klog.FromContext(ctx).Error(err, "The serving certificate is not there yet, it will be tried again")
		select {
		case <-ctx.Done():
			return fmt.Errorf("no serving certificate: %w", err)
		case <-time.After(backoff.Step()):
		}
	}
}

// Run keeps certificates until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := k.Keep(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Keeping the serving certificate failed, it will be tried again")
		}
	}, looks, 0.5, false)
}

// Keep looks once, and does what is to be done.
func (k *Keeper) Keep(ctx context.Context) error {
	data, err := k.share(ctx)
	if err != nil {
		return fmt.Errorf("the Secret %s: %w", k.Secret, err)
	}
	// kube-apiserver knows the authority first.
	if err := k.tell(ctx, data[keyAuthorities]); err != nil {
		return fmt.Errorf("the APIService %s: %w", k.APIService, err)
	}
	return k.write(data)
}

// share gives what all replicas serve with, made or renewed by this one if it is the first to see the need.
func (k *Keeper) share(ctx context.Context) (data map[string][]byte, err error) {
	for range maxTries {
		data, err = k.shareOnce(ctx)
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return data, err
}

func (k *Keeper) shareOnce(ctx context.Context) (map[string][]byte, error) {
	secrets := k.Client.CoreV1().Secrets(k.Secret.Namespace)
	secret, err := secrets.Get(ctx, k.Secret.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	data, changed, err := Next(secret.Data, k.Names, k.Clock.Now())
	if err != nil || !changed {
		return data, err
	}
	secret.Data = data
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	return data, err
}

// tell has kube-apiserver trust the authorities.
func (k *Keeper) tell(ctx context.Context, authorities []byte) error {
	apiService, err := k.Dynamic.Resource(apiServices).Get(ctx, k.APIService, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var known struct {
		Spec struct {
			CABundle []byte `json:"caBundle"`
		} `json:"spec"`
	}
	text, err := apiService.MarshalJSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return err
	}
	if bytes.Equal(known.Spec.CABundle, authorities) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"caBundle": authorities}})
	if err != nil {
		return err
	}
	_, err = k.Dynamic.Resource(apiServices).Patch(ctx, k.APIService, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// write puts down what to serve with. The key comes first: the server takes up a pair that fits, and looks again until it does.
func (k *Keeper) write(data map[string][]byte) error {
	for _, key := range []string{keyLeafKey, keyLeaf} {
		file := filepath.Join(k.Folder, key)
		if there, err := os.ReadFile(file); err == nil && bytes.Equal(there, data[key]) {
			continue
		}
		if err := os.WriteFile(file+".new", data[key], 0o600); err != nil {
			return err
		}
		if err := os.Rename(file+".new", file); err != nil {
			return err
		}
	}
	return nil
}
