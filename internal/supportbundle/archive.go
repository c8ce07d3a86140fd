// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package supportbundle

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of a bundle, before compression.
const (
	maxFile  = 16 << 20
	maxTotal = 256 << 20
)

// errFull says that a bundle has as much in it as it may have.
var errFull = errors.New("left out: the bundle is full")

// archive is a gzipped tar archive of bounded size.
type archive struct {
	folder string
	now    time.Time
	zipped *gzip.Writer
	tar    *tar.Writer
	size   int
	// broken is the first error of the writer below: nothing can be added after it.
	broken error
}

func newArchive(out io.Writer, now time.Time) *archive {
	zipped := gzip.NewWriter(out)
	return &archive{folder: "support-bundle-" + now.UTC().Format("20060102-150405"), now: now, zipped: zipped, tar: tar.NewWriter(zipped)}
}

// add puts a file in, cut where it is too long.
func (a *archive) add(name string, text []byte) error {
	if a.broken != nil {
		return a.broken
	}
	if len(text) > maxFile {
		text = append(text[:maxFile:maxFile], "\ncut here: the file is too long\n"...)
	}
	if a.size+len(text) > maxTotal {
		return fmt.Errorf("%s: %w", name, errFull)
	}
	a.size += len(text)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: a.folder + "/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: a.now}
	if a.broken = a.tar.WriteHeader(header); a.broken != nil {
		return a.broken
	}
	_, a.broken = a.tar.Write(text)
	return a.broken
}

func (a *archive) close() error {
	return errors.Join(a.broken, a.tar.Close(), a.zipped.Close())
}
