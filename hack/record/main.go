// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Command record follows one HelmRelease of the system namespace and writes every state it is seen in to a file of its own,
// until the release is gone or the command is interrupted. The states that the controllers are tested on were taken so:
//
//	go run ./hack/record -out controllers/cloudspace/testdata/helmreleases -prefix install alice-default
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/controllers"
	"github.com/tantilium/cloud-runner/internal/names"
)

func main() {
	out := flag.String("out", ".", "folder for the files")
	prefix := flag.String("prefix", "state", "how the names of the files begin")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: record [-out DIR] [-prefix NAME] HELMRELEASE")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := record(ctx, flag.Arg(0), filepath.Join(*out, *prefix))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, name, base string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: controllers.Scheme()})
	if err != nil {
		return err
	}
	only := client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)}
	events, err := c.Watch(ctx, &helmv2.HelmReleaseList{}, client.InNamespace(names.SystemNamespace), only)
	if err != nil {
		return err
	}
	defer events.Stop()
	count := 0
	for event := range events.ResultChan() {
		release, ok := event.Object.(*helmv2.HelmRelease)
		if !ok {
			continue
		}
		if event.Type == watch.Deleted {
			return nil
		}
		count++
		if err := write(release, fmt.Sprintf("%s-%02d.yaml", base, count)); err != nil {
			return err
		}
	}
	return nil
}

// write leaves out what says nothing: managed fields, and the values of the chart.
func write(release *helmv2.HelmRelease, path string) error {
	release.ManagedFields = nil
	release.Spec.Values = nil
	text, err := yaml.Marshal(release)
	if err != nil {
		return err
	}
	fmt.Println(path)
	return os.WriteFile(path, text, 0o644)
}
