// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

type platformImage struct {
	platform v1.Platform
	image    v1.Image
}

// index binds the images of all platforms together under one name.
func (r release) index(command string, images []platformImage) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: i.image, Descriptor: v1.Descriptor{Platform: &i.platform}})
	}
	annotated, ok := mutate.Annotations(index, r.labels(command)).(v1.ImageIndex)
	if !ok {
		return nil, errors.New("an annotated index is no index")
	}
	return annotated, nil
}

// tag is what the image of a command is called. An image that has nowhere to go is refused before it is built.
func (o options) tag(command string) (name.Tag, error) {
	if !o.push && o.folder == "" {
		return name.Tag{}, errors.New("neither --push nor --folder says where to")
	}
	if strings.Contains(o.registry, "://") {
		return name.Tag{}, fmt.Errorf("registry %s: a host and a path, without https://", o.registry)
	}
	return name.NewTag(o.registry + "/" + command + ":" + o.version)
}

// publish writes the image to a folder and, where it is asked for, pushes it, first all it consists of, then the tag. It returns
// the reference by digest.
func (o options) publish(ctx context.Context, command string, tag name.Tag, index v1.ImageIndex) (string, error) {
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	if o.folder != "" {
		if err := writeLayout(filepath.Join(o.folder, command), index); err != nil {
			return "", fmt.Errorf("writing: %w", err)
		}
	}
	if o.push {
		if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return "", fmt.Errorf("pushing: %w", err)
		}
	}
	return fmt.Sprintf("%s@%s", tag, digest), nil
}

// writeLayout replaces what an earlier build left in the folder.
func writeLayout(folder string, index v1.ImageIndex) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index)
}
