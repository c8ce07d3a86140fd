// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toolsModule makes a small tools module and returns its folder.
func toolsModule(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	put(t, folder, "go.mod", "module tools\n")
	put(t, folder, "go.sum", "")
	put(t, folder, "cmd/kube/main.go", "package main\n")
	return folder
}

func put(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func key(t *testing.T, goRelease, folder string) string {
	t.Helper()
	key, err := cacheKey(goRelease, folder)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestCacheKeyIsTheSameForEveryClone(t *testing.T) {
	one, two := key(t, "go1.26.8", toolsModule(t)), key(t, "go1.26.8", toolsModule(t))
	if one != two || len(one) != keyLength {
		t.Errorf("keys of equal modules are %q and %q", one, two)
	}
}

func TestCacheKeyFollowsWhatIsBuilt(t *testing.T) {
	before := key(t, "go1.26.8", toolsModule(t))
	for _, test := range []struct {
		name, goRelease, file, text string
		changes                     bool
	}{
		{"another Go release", "go1.26.9", "go.sum", "", true},
		{"another module", "go1.26.8", "go.mod", "module tools\nrequire a v1.0.0\n", true},
		{"another checksum", "go1.26.8", "go.sum", "a v1.0.0 h1:x\n", true},
		{"another main", "go1.26.8", "cmd/kube/main.go", "package main // changed\n", true},
		{"a new main", "go1.26.8", "cmd/more/main.go", "package main\n", true},
		{"a test", "go1.26.8", "values/values_test.go", "package values\n", false},
		{"a text", "go1.26.8", "README.md", "text", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := toolsModule(t)
			put(t, folder, test.file, test.text)
			if after := key(t, test.goRelease, folder); (after != before) != test.changes {
				t.Errorf("key changed: %t, want %t", after != before, test.changes)
			}
		})
	}
}

func TestVersionsAreThoseOfTheToolsModule(t *testing.T) {
	text, err := os.ReadFile("../../tools/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for module, version := range map[string]string{
		"k8s.io/kubernetes":                   Kubernetes,
		"go.etcd.io/etcd/server/v3":           Etcd,
		"github.com/containerd/containerd/v2": containerd,
		"github.com/coredns/coredns":          CoreDNS,
		vclusterModule:                        VCluster,
		helmModule:                            HelmController,
		sourceModule:                          SourceController,
		kustomizeModule:                       KustomizeController,
	} {
		if !strings.Contains(string(text), "\n\t"+module+" "+version+"\n") {
			t.Errorf("tools/go.mod does not require %s %s", module, version)
		}
	}
}

func TestPartsBuildBeforeTheyAreUsed(t *testing.T) {
	built := map[string]bool{}
	for _, part := range parts() {
		if built[part.Name] {
			t.Errorf("%s is built twice", part.Name)
		}
		built[part.Name] = true
	}
	for _, image := range images("bin") {
		for _, file := range image.Files {
			if name, ok := strings.CutPrefix(file.Source, "bin/"); ok && !built[name] {
				t.Errorf("image %s holds %s, which is not built", image.Ref, name)
			}
		}
	}
}

func TestArchivesHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for _, archive := range (Cache{Dir: "/cache"}).Archives() {
		if other, ok := seen[archive.Path]; ok {
			t.Errorf("%s and %s share %s", archive.Ref, other, archive.Path)
		}
		if filepath.Dir(archive.Path) != "/cache/images" {
			t.Errorf("archive of %s is %s", archive.Ref, archive.Path)
		}
		seen[archive.Path] = archive.Ref
	}
}

func TestCompilerMessagesAreCounted(t *testing.T) {
	released := 0
	run := newCompilation(part{Name: "tool", Package: "example.test/tool"}, func() { released++ })
	complaints := run.follow(strings.NewReader(`go: downloading example.test/lib v1.0.0
internal/goarch
example.test/lib
# example.test/bad
bad.go:1:1: expected package
`))
	if got := run.detail(); got != "2 packages compiled" {
		t.Errorf("detail is %q", got)
	}
	if want := "# example.test/bad\nbad.go:1:1: expected package\n"; complaints != want {
		t.Errorf("complaints are %q, want %q", complaints, want)
	}
	if released != 0 {
		t.Error("the compiler was released before the last package")
	}
	run.follow(strings.NewReader("example.test/tool\n"))
	run.releaseCompiler()
	if released != 1 || run.detail() != "linking" {
		t.Errorf("released %d times, detail %q, want once and linking", released, run.detail())
	}
}

func TestLinkerFlagsAreInOneOrder(t *testing.T) {
	run := newCompilation(part{Variables: map[string]string{"b": "2", "a": "1"}}, func() {})
	if got, want := run.linkerFlags(), "-s -w -X a=1 -X b=2"; got != want {
		t.Errorf("flags are %q, want %q", got, want)
	}
}
