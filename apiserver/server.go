// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	tenancyclient "github.com/tantilium/cloud-runner/apis/client/clientset/versioned"
	"github.com/tantilium/cloud-runner/apis/client/informers/externalversions"
	tenancyinformers "github.com/tantilium/cloud-runner/apis/client/informers/externalversions/tenancy/v1alpha1"
	tenancyv1alpha1 "github.com/tantilium/cloud-runner/apis/tenancy/v1alpha1"
	"github.com/tantilium/cloud-runner/apiserver/backend"
	"github.com/tantilium/cloud-runner/apiserver/registry"
	"github.com/tantilium/cloud-runner/apiserver/registry/account"
	"github.com/tantilium/cloud-runner/apiserver/registry/cloudspace"
	"github.com/tantilium/cloud-runner/apiserver/schema"
	"github.com/tantilium/cloud-runner/apiserver/scope"
	"github.com/tantilium/cloud-runner/internal/names"
	"github.com/tantilium/cloud-runner/internal/servingcert"
)

// codecs have the kinds that the generic server itself answers with.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, runtimeschema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme)
}()

// Run serves until ctx ends, and then ends what it has begun.
func Run(ctx context.Context, o *Options) error {
	host, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(host)
	if err != nil {
		return err
	}
	if err := CheckFrontProxy(ctx, client); err != nil {
		return err
	}
	if err := keepCertificate(ctx, o, host, client); err != nil {
		return err
	}
	server, err := newServer(o, host, client) //nolint:contextcheck // what it does when a Tenant changes outlives this call
	if err != nil {
		return err
	}
	return server.PrepareRun().RunWithContext(ctx)
}

// keepCertificate makes the certificate to serve with, and keeps it as long as the server runs; unless there is one from elsewhere.
func keepCertificate(ctx context.Context, o *Options, host *rest.Config, client kubernetes.Interface) error {
	if o.ServingSecret == "" {
		return nil
	}
	namespace, name, found := strings.Cut(o.ServingSecret, "/")
	if !found {
		return fmt.Errorf("--serving-secret must be <namespace>/<name>, not %q", o.ServingSecret)
	}
	dynamically, err := dynamic.NewForConfig(host)
	if err != nil {
		return err
	}
	keeper := &servingcert.Keeper{
		Client: client, Dynamic: dynamically, Secret: types.NamespacedName{Namespace: namespace, Name: name},
		APIService: group.Version + "." + group.Group, Names: []string{serviceName + "." + names.CoreNamespace + ".svc"},
		Folder: o.ServingFolder, Clock: clock.RealClock{},
	}
	if err := keeper.Prepare(ctx); err != nil {
		return err
	}
	o.SecureServing.ServerCert.CertKey.CertFile, o.SecureServing.ServerCert.CertKey.KeyFile = keeper.CertFile(), keeper.KeyFile()
	go keeper.Run(ctx)
	return nil
}

// serviceName is what kube-apiserver reaches the server by, in the core namespace.
const serviceName = "kubeopera-api"

// newServer puts the view behind the filters of the generic server.
func newServer(o *Options, host *rest.Config, client kubernetes.Interface) (*genericapiserver.GenericAPIServer, error) {
	config, err := o.config()
	if err != nil {
		return nil, err
	}
	tenants, err := newTenants(host)
	if err != nil {
		return nil, err
	}
	scopes := newResolver(tenants, client, config.Authorization.Authorizer)
	if _, err := tenants.Informer().AddEventHandler(scopes.TenantsChanged()); err != nil {
		return nil, err
	}
	stores, err := newStores(host, scopes)
	if err != nil {
		return nil, err
	}
	server, err := config.Complete(nil).New(serviceName, genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	return server, errors.Join(install(server, stores, config), follow(server, tenants))
}

func newStores(host *rest.Config, scopes *scope.Resolver) (map[string]registry.ReadStore, error) {
	cloudSpaces, err := backend.New(host, tenancyv1alpha1.SchemeGroupVersion.WithResource("cloudspaces"))
	if err != nil {
		return nil, err
	}
	tenants, err := backend.New(host, tenancyv1alpha1.SchemeGroupVersion.WithResource("tenants"))
	if err != nil {
		return nil, err
	}
	return map[string]registry.ReadStore{
		"cloudspaces": cloudspace.NewStore(cloudSpaces, scopes),
		"accounts":    account.NewStore(tenants, scopes),
	}, nil
}

func install(server *genericapiserver.GenericAPIServer, stores map[string]registry.ReadStore, config *genericapiserver.Config) error {
	definitions, err := schema.Definitions()
	if err != nil {
		return err
	}
	minTimeout := time.Duration(config.MinRequestTimeout) * time.Second
	handler, err := registry.NewHandler(definitions, stores, config.Authorization.Authorizer, minTimeout)
	if err != nil {
		return err
	}
	discover(server, definitions, stores)
	server.Handler.NonGoRestfulMux.HandlePrefix(versionPath+"/", handler)
	return describe(server, definitions, stores)
}

// newTenants follows all Tenants. Of their status it keeps what identities are compared with.
func newTenants(host *rest.Config) (tenancyinformers.TenantInformer, error) {
	client, err := tenancyclient.NewForConfig(host)
	if err != nil {
		return nil, err
	}
	factory := externalversions.NewSharedInformerFactoryWithOptions(client, 0, externalversions.WithTransform(func(object any) (any, error) {
		if tenant, ok := object.(*tenancyv1alpha1.Tenant); ok {
			tenant.ManagedFields = nil
			tenant.Status = tenancyv1alpha1.TenantStatus{NamespaceUID: tenant.Status.NamespaceUID}
		}
		return object, nil
	}))
	return factory.Tenancy().V1alpha1().Tenants(), nil
}

func newResolver(tenants tenancyinformers.TenantInformer, client kubernetes.Interface, authz authorizer.Authorizer) *scope.Resolver {
	return &scope.Resolver{
		Tenants:    tenants.Lister(),
		Authorizer: authz,
		NamespaceUID: func(ctx context.Context, name string) (string, error) {
			namespace, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return string(namespace.UID), nil
		},
	}
}

// follow begins to follow Tenants when the server starts. It is not ready before it knows them all.
func follow(server *genericapiserver.GenericAPIServer, tenants tenancyinformers.TenantInformer) error {
	informer := tenants.Informer()
	if err := server.AddReadyzChecks(healthz.NamedCheck("tenants", func(*http.Request) error {
		if !informer.HasSynced() {
			return errors.New("not all Tenants are known yet")
		}
		return nil
	})); err != nil {
		return err
	}
	return server.AddPostStartHook("tenants", func(hook genericapiserver.PostStartHookContext) error {
		go informer.RunWithContext(hook)
		if !cache.WaitForCacheSync(hook.Done(), informer.HasSynced) {
			return errors.New("not all Tenants were known in time")
		}
		return nil
	})
}
