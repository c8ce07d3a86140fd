// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	controllerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/tantilium/cloud-runner/apis/config/v1alpha1"
	"github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/controllers"
)

// What all tests share: one API server, one operator with the rights that config/rbac gives it, one stand-in.
var (
	// api is the client of an administrator who also does what only the operator may. It reads live.
	api client.WithWatch
	// admin is an administrator's client.
	admin client.WithWatch
	// adminConfig is for clients that need more than api.
	adminConfig *rest.Config
	// calls are the requests of the operator.
	calls = &callRecorder{}
	// flux answers what the operator asks about Flux inside.
	flux = &fakeFlux{missing: map[string]string{}}
	// theStandIn does what Flux, vCluster and kube-controller-manager would do.
	theStandIn = &standIn{behaviours: map[string]behaviour{}}
	// statuses has seen every status that was written.
	statuses = &statusWatch{seen: map[string][]client.Object{}}
	platform *configv1alpha1.PlatformConfig
	// tokens signs those that the API server knows people by.
	tokens *issuer
	// provider is the platform's own, by which the API server knows people too.
	provider *ownProvider
)

// backgroundContext is for what outlives the context of a test.
var backgroundContext = context.Background()

// backgroundTimeout bounds what must come at once.
const backgroundTimeout = 10 * time.Second

const operatorUser = "system:serviceaccount:kubeopera-system:tenant-controller"

func TestMain(m *testing.M) {
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/integration:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 1, errors.New("KUBEBUILDER_ASSETS is not set: it must name a folder with kube-apiserver and etcd; " +
			"make test-integration sets it")
	}
	if err := manyAtATime(); err != nil {
		return 1, err
	}
	ctrl.SetLogger(logr.Discard())
	gateways, err := exec.CommandContext(backgroundContext, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	if err != nil {
		return 1, fmt.Errorf("finding the Gateway API: %w", err)
	}
	tlsRoutes := filepath.Join(strings.TrimSpace(string(gateways)), "config", "crd", "standard", "gateway.networking.k8s.io_tlsroutes.yaml")
	environment := &envtest.Environment{
		CRDDirectoryPaths:        []string{repository("config", "crd"), repository("charts", "cloudspace-flux", "crds"), tlsRoutes},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	environment.ControlPlane.GetAPIServer().Configure().
		Append("service-cluster-ip-range", "10.96.0.0/16").
		Append("max-requests-inflight", "1000")
	folder, err := os.MkdirTemp("", "authentication")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if tokens, err = startIssuer(); err != nil {
		return 1, err
	}
	defer tokens.Close()
	if provider, err = listenAsProvider(backgroundContext, folder); err != nil {
		return 1, err
	}
	authentication, err := tokens.configured(folder, provider)
	if err != nil {
		return 1, fmt.Errorf("config/authn: %w", err)
	}
	environment.ControlPlane.GetAPIServer().Configure().Append("authentication-config", authentication)
	// Room for many CloudSpaces.
	environment.ControlPlane.Etcd = &envtest.Etcd{}
	environment.ControlPlane.Etcd.Configure().Append("quota-backend-bytes", "8589934592")
	if adminConfig, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("starting kube-apiserver and etcd: %w", err)
	}
	defer func() { err = errors.Join(err, environment.Stop()) }()
	ctx, cancel := context.WithCancel(context.Background())
	running, err := start(ctx, environment)
	if err != nil {
		cancel()
		return 1, err
	}
	code = m.Run()
	cancel()
	for _, done := range running {
		err = errors.Join(err, <-done)
	}
	return code, errors.Join(err, statuses.complaints())
}

// start installs the platform as config/ ships it and starts everything that runs beside the tests.
func start(ctx context.Context, environment *envtest.Environment) (running []chan error, err error) {
	adminConfig.QPS = -1
	if admin, err = client.NewWithWatch(adminConfig, client.Options{Scheme: controllers.Scheme()}); err != nil {
		return nil, err
	}
	if api, err = byHand(admin); err != nil {
		return nil, err
	}
	if platform, err = configv1alpha1.Load(repository("config", "manager", "platform-config.yaml")); err != nil {
		return nil, err
	}
	// Retries must not make tests slow; the waits themselves are tested with a clock of their own.
	platform.Backoff.Base.Duration, platform.Backoff.Max.Duration = 50*time.Millisecond, 500*time.Millisecond
	platform.Deadlines.InnerRelease.Duration, platform.Deadlines.Release.Duration = 2*time.Second, 6*time.Second
	platform.TenantQuota.Hard = v1alpha1.QuotaAmounts{}
	platform.Network.APIServers, platform.Network.Resolver = []string{"192.0.2.1:6443"}, "10.96.0.53"
	platform.Endpoint = configv1alpha1.Endpoint{
		LoadBalancer: &configv1alpha1.LoadBalancerEndpoint{},
		Hostname: &configv1alpha1.HostnameEndpoint{
			Domains: []string{"spaces.example.com"}, Ingress: &configv1alpha1.IngressEndpoint{Annotations: map[string]string{"example.com/passthrough": "true"}},
		},
	}
	for _, path := range []string{"manager/namespace.yaml", "core/namespace.yaml", "manager/priority_classes.yaml", "rbac/service_account.yaml", "rbac/role.yaml", "rbac/role_binding.yaml", "rbac/host_namespace.yaml", "rbac/members.yaml", "rbac/super_admin.yaml", "rbac/customer.yaml", "apiserver/service_account.yaml", "apiserver/role.yaml", "apiserver/role_binding.yaml", "auth/service_account.yaml", "auth/rbac.yaml", "auth/secrets.yaml", "admission/retry.yaml", "admission/cloudspaces.yaml", "admission/deletion_protection.yaml", "admission/operator.yaml", "admission/host_namespaces.yaml", "admission/priority.yaml", "admission/raw_sockets.yaml", "admission/syncers.yaml"} {
		if err := install(ctx, repository("config", path)); err != nil {
			return nil, err
		}
	}
	platform.Images.PullSecrets = []string{pullSecret}
	if err := api.Create(ctx, credentials("first")); err != nil {
		return nil, err
	}
	operator, err := environment.AddUser(envtest.User{
		Name: operatorUser, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:kubeopera-system"},
	}, adminConfig)
	if err != nil {
		return nil, err
	}
	operatorConfig = operator.Config()
	operatorConfig.QPS = -1
	// JSON, so that the recorder can read the names of what is created.
	operatorConfig.ContentType = "application/json"
	if err := statuses.start(ctx); err != nil {
		return nil, err
	}
	for _, run := range []func(context.Context) (ctrl.Manager, error){
		func(context.Context) (ctrl.Manager, error) { return newStandInManager() },
		newOperator,
	} {
		mgr, err := run(ctx)
		if err != nil {
			return nil, err
		}
		done := make(chan error, 1)
		go func() { done <- mgr.Start(ctx) }()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return nil, errors.New("the caches of a manager did not sync")
		}
		running = append(running, done)
	}
	served, err := provider.start(ctx, environment)
	return append(running, served), err
}

// newOperator is the operator as cmd/tenant-controller runs it, with the rights of its ServiceAccount and its requests noted.
func newOperator(ctx context.Context) (ctrl.Manager, error) {
	config := rest.CopyConfig(operatorConfig)
	config.Wrap(calls.wrap)
	options := controllers.CacheOptions(platform)
	options.NewInformer = informers(view{serves: servesNoFaults})
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:     controllers.Scheme(),
		Cache:      options,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: controllerconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	return mgr, controllers.Add(ctx, mgr, controllers.Options{
		Platform: platform, Concurrency: 4, Flux: flux, Clock: clock.RealClock{}, Metrics: prometheus.NewRegistry(),
	})
}

// install creates every object in a file of config/.
func install(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, document := range documents(string(text)) {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := api.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// repository is a path in the repository.
func repository(parts ...string) string {
	return filepath.Join(append([]string{"..", ".."}, parts...)...)
}

// eventually waits for something to come true, looking often. What it takes is bounded by the deadline of a loaded machine,
// not by what the test expects.
func eventually(t *testing.T, check func(gomega.Gomega)) {
	t.Helper()
	gomega.NewWithT(t).Eventually(check).WithTimeout(60 * time.Second).WithPolling(20 * time.Millisecond).Should(gomega.Succeed())
}

// manyAtATime lets more tests run side by side than there are processors, unless the command line says how many: most of their time
// they wait.
func manyAtATime() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", "8")
}
