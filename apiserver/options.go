// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
)

// Options are the flags of the server.
type Options struct {
	// Kubeconfig of the host cluster; empty inside of it.
	Kubeconfig string

	// ServingSecret, <namespace>/<name>, is where the serving certificate is kept and renewed; empty when --tls-cert-file gives one.
	ServingSecret string
	// ServingFolder is where this replica puts down its certificate.
	ServingFolder string

	Run            *options.ServerRunOptions
	SecureServing  *options.SecureServingOptionsWithLoopback
	Authentication *options.DelegatingAuthenticationOptions
	Authorization  *options.DelegatingAuthorizationOptions
	Audit          *options.AuditOptions

	versions basecompatibility.ComponentGlobalsRegistry
}

// watchTimeout is how long a watch lasts at least, in seconds, if the client does not say; twice that at most.
const watchTimeout = 300

// NewOptions gives options with their defaults.
func NewOptions() *Options {
	versions := basecompatibility.NewComponentGlobalsRegistry()
	o := &Options{
		Run:            options.NewServerRunOptionsForComponent(basecompatibility.DefaultKubeComponent, versions),
		SecureServing:  options.NewSecureServingOptions().WithLoopback(),
		Authentication: options.NewDelegatingAuthenticationOptions(),
		Authorization:  options.NewDelegatingAuthorizationOptions(),
		Audit:          options.NewAuditOptions(),
		versions:       versions,
	}
	o.SecureServing.BindPort = 6443
	o.Run.MinRequestTimeout = watchTimeout
	// A new pod is sent requests only after the one that ends has stopped taking them.
	o.Run.ShutdownDelayDuration = 10 * time.Second
	o.Run.ShutdownSendRetryAfter = true
	o.Run.GoawayChance = goawayChance
	return o
}

// goawayChance is how often a connection is ended so that the next one may reach another replica: kube-apiserver has one for all clients.
const goawayChance = 0.001

// AddFlags makes flags of the options.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "kubeconfig of the host cluster; left out within it")
	flags.StringVar(&o.ServingSecret, "serving-secret", o.ServingSecret,
		"<namespace>/<name> of the Secret in which the serving certificate is made and renewed; left out with --tls-cert-file")
	flags.StringVar(&o.ServingFolder, "serving-folder", o.ServingFolder, "folder for the serving certificate of this replica; must be its own")
	o.Run.AddUniversalFlags(flags)
	o.SecureServing.AddFlags(flags)
	o.Authentication.AddFlags(flags)
	o.Authorization.AddFlags(flags)
	o.Audit.AddFlags(flags)
}

// Validate checks the options, after flags were read.
func (o *Options) Validate() error {
	if err := o.versions.Set(); err != nil {
		return err
	}
	var all []error
	all = append(all, o.Run.Validate()...)
	all = append(all, o.SecureServing.Validate()...)
	all = append(all, o.Authentication.Validate()...)
	all = append(all, o.Authorization.Validate()...)
	all = append(all, o.Audit.Validate()...)
	if o.Authentication.SkipInClusterLookup {
		all = append(all, errors.New("the front proxy's certificates are looked up in the cluster: --authentication-skip-lookup is not for this server"))
	}
	return utilerrors.NewAggregate(all)
}

// config makes the generic server's configuration.
func (o *Options) config() (*genericapiserver.Config, error) {
	config := genericapiserver.NewConfig(codecs)
	if err := o.Run.ApplyTo(config); err != nil {
		return nil, err
	}
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	if err := o.SecureServing.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
		return nil, err
	}
	if err := o.Authentication.ApplyTo(&config.Authentication, config.SecureServing, nil); err != nil {
		return nil, err
	}
	if err := o.Authorization.ApplyTo(&config.Authorization); err != nil {
		return nil, err
	}
	if err := o.Audit.ApplyTo(config); err != nil {
		return nil, err
	}
	// What it serves is described by its own means.
	config.SkipOpenAPIInstallation = true
	return config, nil
}
