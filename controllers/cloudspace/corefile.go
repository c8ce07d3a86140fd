// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import "fmt"

// corefile is vCluster's own but for the last resort: CoreDNS would ask the resolvers of its node, which may know the host cluster's
// names, and which NetworkPolicies keep it from.
const corefile = `.:1053 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    hosts /etc/coredns/NodeHosts {
        ttl 60
        reload 15s
        fallthrough
    }
    prometheus :9153
    forward . %s
    cache 30
    loop
    reload
    loadbalance
}

import /etc/coredns/custom/*.server`

// coreDNSConfig is what CoreDNS of a CloudSpace runs with.
func coreDNSConfig(resolver string) string { return fmt.Sprintf(corefile, resolver) }
