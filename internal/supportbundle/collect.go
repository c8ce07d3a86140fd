// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supportbundle collects the state of the platform for people who help from elsewhere: objects, events and logs, in one
// archive. What is secret stays out: of Secrets there are names, keys and sizes, of what tenants run there is what Kubernetes says
// about it, and in all text what looks like a credential is replaced.
//
// General collectors, such as troubleshoot.sh, know nothing of these rules, take Secrets and whole pods unless told otherwise, and
// bring more modules than the operator itself has.
package supportbundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// callTimeout bounds each request: one that hangs must not keep the others from being made.
const callTimeout = 30 * time.Second

// Options of a bundle.
type Options struct {
	// Tenant restricts it to one tenant's objects, by id; empty means all.
	Tenant string
	// Version of the program, for the summary.
	Version string
	// Progress is told of each part as it is done.
	Progress io.Writer
	// Now is when the bundle is made.
	Now time.Time
}

// part collects one thing. What it could collect before an error stays.
type part struct {
	name string
	do   func(context.Context) error
}

// collector is one bundle in the making.
type collector struct {
	Options
	typed   kubernetes.Interface
	dynamic dynamic.Interface
	archive *archive
}

// Collect writes a bundle, a gzipped tar archive. What cannot be collected is told in errors.txt within it, and does not keep the rest
// from being there: an error means that the archive could not be written.
func Collect(ctx context.Context, config *rest.Config, out io.Writer, o Options) error {
	config = rest.CopyConfig(config)
	config.Timeout = callTimeout
	config.QPS, config.Burst = 50, 100
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	c := &collector{Options: o, typed: typed, dynamic: untyped, archive: newArchive(out, o.Now)}
	problems := c.run(ctx, c.parts())
	return errors.Join(c.archive.add("errors.txt", []byte(problems)), c.archive.close())
}

func (c *collector) parts() []part {
	return []part{
		{"summary", c.summary},
		{"objects of the platform", c.platformObjects},
		{"kubeopera-system", c.systemNamespace},
		{"Flux", c.flux},
		{"CloudSpaces", c.cloudSpaces},
	}
}

// run does all parts and returns what went wrong, one line each.
func (c *collector) run(ctx context.Context, parts []part) string {
	var problems strings.Builder
	for _, p := range parts {
		err := p.do(ctx)
		outcome := "ok"
		if err != nil {
			outcome = "in part, see errors.txt"
			_, _ = fmt.Fprintf(&problems, "%s:\n%s\n", p.name, redact(err.Error()))
		}
		_, _ = fmt.Fprintf(c.Progress, "%-26s %s\n", p.name, outcome)
	}
	return problems.String()
}

// summary says what is where in the bundle, and what made it.
func (c *collector) summary(context.Context) error {
	host, err := c.typed.Discovery().ServerVersion()
	version := "unknown"
	if err == nil {
		version = host.GitVersion
	}
	tenant := c.Tenant
	if tenant == "" {
		tenant = "all"
	}
	return errors.Join(err, c.archive.add("summary.txt", fmt.Appendf(nil, `Support bundle of Tantilium Cloud Runner
made        %s
by          tenant-controller %s
Kubernetes  %s
tenants     %s

objects/            objects of the platform, by kind
namespaces/         by namespace: workloads, events, quotas; of Secrets names, keys and sizes
logs/               by namespace, pod and container; with .previous, of the run before
errors.txt          what could not be collected
`, c.Now.UTC().Format(time.RFC3339), c.Version, version, tenant)))
}
