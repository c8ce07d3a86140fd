// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package prereq

import (
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// debianPackage is a package and how to see that it need not be installed.
type debianPackage struct {
	name    string
	present func() bool
}

func packages() []debianPackage {
	return []debianPackage{
		{"runc", command("runc")},
		{"containernetworking-plugins", file("/usr/lib/cni/bridge")},
		{"iptables", command("iptables-restore")},
		{"ipset", command("ipset")},
		{"conntrack", command("conntrack")},
		{"busybox-static", static("/bin/busybox")},
		{"util-linux", command("nsenter")},
		{"mount", command("mount")},
		{"ca-certificates", file("/etc/ssl/certs/ca-certificates.crt")},
	}
}

// Install installs the Debian packages that are missing and says so on out. It does nothing if none is.
func Install(ctx context.Context, out io.Writer) error {
	var missing []string
	for _, p := range packages() {
		if !p.present() {
			missing = append(missing, p.name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(out, "installing Debian packages: %s\n", strings.Join(missing, " "))
	// The package lists may be old or absent; they are fetched only if it does not work without.
	if install(ctx, missing) == nil {
		return nil
	}
	if err := apt(ctx, "update", "--quiet"); err != nil {
		return err
	}
	return install(ctx, missing)
}

func install(ctx context.Context, names []string) error {
	return apt(ctx, append([]string{"install", "--yes", "--quiet", "--no-install-recommends"}, names...)...)
}

func apt(ctx context.Context, args ...string) error {
	args = append([]string{"-o", "DPkg::Lock::Timeout=300"}, args...)
	command := exec.CommandContext(ctx, "apt-get", args...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w\n%s", strings.Join(args, " "), err, lastLines(string(out), 5))
	}
	return nil
}

func lastLines(text string, count int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

func command(name string) func() bool {
	return func() bool {
		_, err := exec.LookPath(name)
		return err == nil
	}
}

func file(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}

// static accepts a busybox only if it needs no library: it is put into images that have none.
func static(path string) func() bool {
	return func() bool {
		binary, err := elf.Open(path)
		if err != nil {
			return false
		}
		defer func() { _ = binary.Close() }()
		for _, program := range binary.Progs {
			if program.Type == elf.PT_INTERP {
				return false
			}
		}
		return true
	}
}
