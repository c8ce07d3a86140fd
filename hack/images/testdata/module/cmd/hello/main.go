// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hello is what the tests put into images.
package main

var version = "devel"

func main() { println(version) }
