#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Checks what no test runs: generated files, tidy modules, the truth of PROJECT and of the layout in docs/architecture.md, lint,
# and the charts. Says everything that is wrong, not only the first.
set -uo pipefail
cd "$(dirname "$0")/.."

failed=0
check() {
  local name=$1
  shift
  if output=$("$@" 2>&1); then
    printf 'ok      %s\n' "$name"
  else
    printf 'FAILED  %s\n%s\n' "$name" "$output"
    failed=1
  fi
}

# unchanged runs a command that writes files and fails when the tree differs from before.
unchanged() {
  local before after
  before=$(fingerprint)
  "$@" > /dev/null || return 1
  after=$(fingerprint)
  [ "$before" = "$after" ] && return 0
  echo "out of date, run: $*"
  git status --short
  return 1
}
fingerprint() { git ls-files -co --exclude-standard -z | sort -z | xargs -0 sha256sum 2> /dev/null | sha256sum; }

tidy() { for m in . charts hack/tools hack/tools/lint hack/hostcluster hack/hostcluster/previous hack/images; do go -C "$m" mod tidy; done; }

project() {
  local ok=0 path kind
  while read -r path; do
    [ -d "${path#github.com/tantilium/cloud-runner/}" ] || { echo "PROJECT names $path, which is not there"; ok=1; }
  done < <(awk '$1 == "path:" {print $2}' PROJECT)
  while read -r kind; do
    [ -d "controllers/${kind,,}" ] || { echo "PROJECT says that $kind has a controller; controllers/${kind,,} is not there"; ok=1; }
  done < <(awk '$1 == "controller:" {c = 1} $1 == "kind:" {if (c) print $2; c = 0}' PROJECT)
  return $ok
}

# layout compares the tree in docs/architecture.md with the folders that have files under git.
layout() {
  diff <(sed -n '/^```tree$/,/^```$/p' docs/architecture.md | awk '/\// {print $1}' | sort) \
    <(git ls-files | awk -F/ 'NF > 1 {print (($1 ~ /^(apis|controllers|internal|cmd|hack|test|config|charts)$/ && NF > 2) ? $1 "/" $2 "/" : $1 "/")}' | sort -u) ||
    { echo 'docs/architecture.md (<) and the tree (>) differ'; return 1; }
}

charts() { eval "$(.local/bin/hostcluster env)" && helm lint --strict --namespace kubeopera-system charts/cloudspace-flux charts/cloud-runner; }

check 'generated files' unchanged make -s generate
check 'tidy modules' unchanged tidy
check 'PROJECT' project
check 'layout' layout
check 'charts' charts
check 'lint' hack/lint.sh
exit $failed
