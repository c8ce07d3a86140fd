// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// plentyOfMemory is from how much memory on, in bytes, the compiler runs without collecting garbage, which saves a
// twentieth of the time.
const plentyOfMemory = 15 << 30

// compilation is one run of "go build".
type compilation struct {
	part part
	// releaseCompiler tells once that only linking is left.
	releaseCompiler func()
	compiled        atomic.Int64
	linking         atomic.Bool
}

func newCompilation(part part, release func()) *compilation {
	return &compilation{part: part, releaseCompiler: sync.OnceFunc(release)}
}

// detail says how far the compilation is.
func (c *compilation) detail() string {
	if c.linking.Load() {
		return "linking"
	}
	return fmt.Sprintf("%d packages compiled", c.compiled.Load())
}

func (c *compilation) build(ctx context.Context, tools, target string) error {
	command := exec.CommandContext(ctx, "go", "build", "-v", "-buildvcs=false", "-ldflags", c.linkerFlags(), "-o", target, c.part.Package)
	command.Dir = tools
	command.Env = append(os.Environ(), environment()...)
	// A compiler that outlived this process would write into what the next one builds. The kernel ends it with the thread
	// that started it, so the thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	messages, err := command.StderrPipe()
	if err != nil {
		return fmt.Errorf("listen to the compiler: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start the compiler: %w", err)
	}
	complaints := c.follow(messages)
	if err := command.Wait(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", c.part.Package, err, complaints)
	}
	return nil
}

// follow counts the packages that the compiler names and returns everything else that it says.
func (c *compilation) follow(messages io.Reader) string {
	var complaints bytes.Buffer
	lines := bufio.NewScanner(messages)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == c.part.Package:
			c.linking.Store(true)
			c.releaseCompiler()
		case strings.HasPrefix(line, "go: downloading "):
		case isPackage(line):
			c.compiled.Add(1)
		default:
			fmt.Fprintln(&complaints, line)
		}
	}
	return complaints.String()
}

// isPackage tells an import path from a message: messages have blanks or begin with #.
func isPackage(line string) bool {
	return line != "" && !strings.ContainsAny(line, " \t#")
}

func (c *compilation) linkerFlags() string {
	flags := []string{"-s", "-w"}
	for _, name := range slices.Sorted(maps.Keys(c.part.Variables)) {
		flags = append(flags, "-X", name+"="+c.part.Variables[name])
	}
	return strings.Join(flags, " ")
}

// environment is the same for every module of the repository, so that they share one build cache.
func environment() []string {
	settings := []string{"CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOWORK=off"}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil && info.Totalram*uint64(info.Unit) >= plentyOfMemory {
		settings = append(settings, "GOGC=off")
	}
	return settings
}
