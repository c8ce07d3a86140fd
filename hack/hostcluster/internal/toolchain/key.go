// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// keyLength is the number of hexadecimal digits of a cache key.
const keyLength = 16

// recipe is raised when the driver changes what it puts into the cache in a way that the key would not show.
const recipe = 2

// cacheKey names all that the contents of the cache depend on: the Go release (such as "go1.26.8 linux/amd64"), the tools
// module with its own mains, every part with its linker flags, and every image. Equal inputs give equal keys whatever the
// path of the clone.
func cacheKey(goRelease, tools string) (string, error) {
	sum := sha256.New()
	description, err := json.Marshal(map[string]any{
		"go": goRelease, "recipe": recipe, "parts": parts(), "images": images("bin"),
	})
	if err != nil {
		return "", fmt.Errorf("describe what is built: %w", err)
	}
	sum.Write(description)
	err = filepath.WalkDir(tools, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() || !isInput(entry.Name()) {
			return nil
		}
		return addFile(sum, tools, path)
	})
	if err != nil {
		return "", fmt.Errorf("read the tools module: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil))[:keyLength], nil
}

func isInput(name string) bool {
	if strings.HasSuffix(name, "_test.go") {
		return false
	}
	return name == "go.mod" || name == "go.sum" || strings.HasSuffix(name, ".go")
}

// addFile adds a file's name and size before its contents, so that no two trees read alike.
func addFile(sum io.Writer, base, path string) error {
	relative, err := filepath.Rel(base, path)
	if err != nil {
		return err
	}
	contents, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(sum, "%s %d\n", filepath.ToSlash(relative), len(contents))
	_, err = sum.Write(contents)
	return err
}
