#!/usr/bin/env bash
# Copyright The Tantilium Cloud Runner Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Makes alice and bob, customers, each with a Tenant, and root, an administrator, on the local host cluster, signs them in, and leaves a
# kubeconfig for each in .local, for any shell. Expects the environment that "hostcluster env" prints. Who is signed in stays so.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 077

plugin=$PWD/.local/bin/auth-service
authority=.local/hostcluster/pki/ca.crt
address=127.0.0.1:$(cat .local/hostcluster/port)

# sign_in NAME [FLAG]... gives a user a new password, unless their session goes on.
sign_in() {
  local name=$1 password=.local/$1.password session=$PWD/.local/$1.session
  shift
  "$plugin" credential --session "$session" > /dev/null 2>&1 && return 0
  head -c 24 /dev/urandom | base64 > "$password"
  "$plugin" user add "$name" --password-file "$password" "$@"
  "$plugin" login --issuer https://10.96.0.20 --connect-to "$address" --tls-server-name auth-service.kubeopera-core.svc \
    --certificate-authority $authority --user "$name" --password-file "$password" --session "$session"
}

# write_kubeconfig NAME [NAMESPACE]
write_kubeconfig() {
  cat > ".local/$1.kubeconfig" <<KUBECONFIG
apiVersion: v1
kind: Config
current-context: $1
contexts:
- {name: $1, context: {cluster: hostcluster, user: $1${2:+, namespace: $2}}}
clusters:
- name: hostcluster
  cluster: {server: "https://$address", certificate-authority-data: $(base64 -w0 $authority)}
users:
- name: $1
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: $plugin
      args: [credential, --session, $PWD/.local/$1.session]
      interactiveMode: Never
KUBECONFIG
}

kubectl apply -f config/samples/tenant.yaml -f config/local/bob.yaml > /dev/null
sign_in alice
sign_in bob
sign_in root --super-admin
write_kubeconfig alice tenant-alice-default
write_kubeconfig bob tenant-bob-default
write_kubeconfig root
printf 'KUBECONFIG=.local/%s.kubeconfig kubectl get cloudspaces\n' alice bob
printf 'KUBECONFIG=.local/root.kubeconfig kubectl get cloudspaces,accounts -A\n'
