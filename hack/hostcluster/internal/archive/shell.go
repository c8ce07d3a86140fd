// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

// applets are the commands that scripts of charts and tests call.
var applets = []string{
	"cat", "chmod", "cp", "cut", "date", "dd", "df", "echo", "env", "false", "find", "grep", "head", "hostname", "id", "kill",
	"ln", "ls", "mkdir", "mv", "nc", "ps", "pwd", "rm", "sed", "seq", "sh", "sleep", "sort", "stat", "tail", "tar", "tee",
	"test", "touch", "true", "tr", "uname", "wc", "wget", "which", "xargs", "yes",
}

// Shell is a static busybox at the path of the machine, and the commands that call it, under /bin of an image.
func Shell(busybox string) []File {
	files := []File{{Source: busybox, Target: "/bin/busybox"}}
	for _, applet := range applets {
		files = append(files, File{Link: "busybox", Target: "/bin/" + applet})
	}
	return files
}
