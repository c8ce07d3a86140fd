// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tantilium/cloud-runner/controllers"
)

// What all tests share.
var (
	// admin is the client of an administrator of the host cluster, for what is stored.
	admin       client.WithWatch
	adminConfig *rest.Config
	// front leads to the replicas, which restart makes anew.
	front   *service
	restart func() (*replica, error)
	// frontProxy signs who may say who a caller is.
	frontProxy *authority
	replicas   []*replica
)

// backgroundContext is for what outlives the context of a test.
var backgroundContext = context.Background()

const apiUser = "system:serviceaccount:kubeopera-core:kubeopera-api"

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/view:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 1, errors.New("KUBEBUILDER_ASSETS is not set: it must name a folder with kube-apiserver and etcd; " +
			"make test-integration sets it")
	}
	ctrl.SetLogger(logr.Discard())
	folder, err := os.MkdirTemp("", "view")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	environment, err := newEnvironment(folder)
	if err != nil {
		return 1, err
	}
	if adminConfig, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("starting kube-apiserver and etcd: %w", err)
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	if err := start(environment, folder); err != nil {
		return 1, err
	}
	code = m.Run()
	for _, r := range replicas {
		r.end()
		err = errors.Join(err, <-r.ended)
	}
	return code, err
}

// newEnvironment is kube-apiserver with the settings of a front proxy that real clusters have.
func newEnvironment(folder string) (*envtest.Environment, error) {
	var err error
	if frontProxy, err = newAuthority("front-proxy"); err != nil {
		return nil, err
	}
	certFile, keyFile, err := frontProxy.signed(folder, "front-proxy-client")
	if err != nil {
		return nil, err
	}
	caFile := filepath.Join(folder, "front-proxy-ca.crt")
	if err := os.WriteFile(caFile, frontProxy.pem(), 0o600); err != nil {
		return nil, err
	}
	environment := &envtest.Environment{
		CRDDirectoryPaths:        []string{repository("config", "crd")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	environment.ControlPlane.GetAPIServer().Configure().
		Append("requestheader-client-ca-file", caFile).
		Append("requestheader-allowed-names", "front-proxy-client").
		Append("requestheader-username-headers", "X-Remote-User").
		Append("requestheader-group-headers", "X-Remote-Group").
		Append("requestheader-extra-headers-prefix", "X-Remote-Extra-").
		Append("proxy-client-cert-file", certFile).
		Append("proxy-client-key-file", keyFile).
		Append("max-requests-inflight", "1000")
	return environment, nil
}

// start installs what the view needs as config/ ships it, and two replicas.
func start(environment *envtest.Environment, folder string) (err error) {
	adminConfig.QPS = -1
	if admin, err = client.NewWithWatch(adminConfig, client.Options{Scheme: controllers.Scheme()}); err != nil {
		return err
	}
	for _, path := range []string{
		"manager/namespace.yaml", "core/namespace.yaml", "rbac/members.yaml", "rbac/super_admin.yaml", "admission/cloudspaces.yaml", "admission/deletion_protection.yaml",
		"apiserver/service_account.yaml", "apiserver/role.yaml", "apiserver/role_binding.yaml", "rbac/customer.yaml", "apiserver/serving_secret.yaml",
	} {
		if err := install(context.Background(), repository("config", path)); err != nil {
			return err
		}
	}
	user, err := environment.AddUser(envtest.User{
		Name: apiUser, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kubeopera-core"},
	}, adminConfig)
	if err != nil {
		return err
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return err
	}
	kubeconfigFile := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(kubeconfigFile, kubeconfig, 0o600); err != nil {
		return err
	}
	restart = func() (*replica, error) { return startReplica(folder, kubeconfigFile) }
	return serve()
}

// serve starts the replicas and lets kube-apiserver know of them.
func serve() (err error) {
	if front, err = startService(); err != nil {
		return err
	}
	if err := admin.Create(context.Background(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeopera-api", Namespace: "kubeopera-core"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}); err != nil {
		return err
	}
	if err := install(context.Background(), repository("config", "apiserver", "api_service.yaml"), leadHere); err != nil {
		return err
	}
	for range 2 {
		r, err := restart()
		if err != nil {
			return err
		}
		replicas = append(replicas, r)
	}
	front.lead(replicas[0].address, replicas[1].address)
	return waitUntilServed()
}

// leadHere has kube-apiserver ask the replicas of this test.
func leadHere(apiService *unstructured.Unstructured) error {
	return unstructured.SetNestedField(apiService.Object, int64(front.port()), "spec", "service", "port")
}

func waitUntilServed() error {
	typed, err := kubernetes.NewForConfig(adminConfig)
	if err != nil {
		return err
	}
	var last error
	for range 300 {
		if _, last = typed.RESTClient().Get().AbsPath("/apis/view.kubeopera.io/v1alpha1/cloudspaces").DoRaw(context.Background()); last == nil {
			return nil
		}
		select {
		case err := <-replicas[0].ended:
			return fmt.Errorf("a replica has ended: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return fmt.Errorf("the view is not served: %w", last)
}

// install creates every object in a file of config/, as it is or altered.
func install(ctx context.Context, path string, alter ...func(*unstructured.Unstructured) error) error {
	text, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = text.Close() }()
	documents := yamlutil.NewYAMLOrJSONDecoder(text, 4096)
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(&object.Object); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("%s: %w", path, err)
		}
		if len(object.Object) == 0 {
			continue
		}
		for _, a := range alter {
			if err := a(object); err != nil {
				return err
			}
		}
		if err := admin.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
}

// repository is a path in the repository.
func repository(parts ...string) string {
	return filepath.Join(append([]string{"..", ".."}, parts...)...)
}

// eventually waits for something to come true, looking often.
func eventually(t *testing.T, check func(gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(check).WithTimeout(60 * time.Second).WithPolling(20 * time.Millisecond).Should(gomega.Succeed())
}
