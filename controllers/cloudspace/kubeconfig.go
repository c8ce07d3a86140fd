// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tantilium/cloud-runner/internal/names"
)

// Keys of kubeconfig Secrets. vCluster writes its own under kubeconfigSourceKey.
const (
	kubeconfigKey       = "value"
	kubeconfigSourceKey = "config"
)

// maxKubeconfig bounds what is read from a host namespace: a kubeconfig has some 6 KiB.
const maxKubeconfig = 64 << 10

// credentials is a kubeconfig that we made, with the end of its validity.
type credentials struct {
	// text leads to server, internal to the CloudSpace's Service within the host cluster.
	text, internal []byte
	server         string
	expires        time.Time
}

// rebuildKubeconfig makes a kubeconfig of the certificate authority and the client certificate in one that is not trusted, and that has
// nothing else in it but the CloudSpace's own server. The error says what is wrong with the input, without quoting it.
func rebuildKubeconfig(untrusted []byte, n names.CloudSpace, server string) (*credentials, error) {
	cluster, user, err := onlyContext(untrusted, n.Endpoint())
	if err != nil {
		return nil, err
	}
	authority, err := cleanAuthority(cluster.CertificateAuthorityData)
	if err != nil {
		return nil, err
	}
	certificate := onlyPEM(user.ClientCertificateData, "CERTIFICATE")
	key := onlyPEM(user.ClientKeyData, "PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY")
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("it has no valid client certificate and key")
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = n.Context()
	config.Contexts[n.Context()] = &clientcmdapi.Context{Cluster: n.Context(), AuthInfo: n.Context()}
	config.Clusters[n.Context()] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[n.Context()] = &clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, err
	}
	config.Clusters[n.Context()].Server = n.Endpoint()
	internal, err := clientcmd.Write(*config)
	if err != nil {
		return nil, err
	}
	return &credentials{text: text, internal: internal, server: server, expires: pair.Leaf.NotAfter}, nil
}

// onlyContext refuses whatever a vCluster does not write: exec plugins, references to files, proxies, other servers, a second context.
func onlyContext(untrusted []byte, server string) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	if len(untrusted) > maxKubeconfig {
		return nil, nil, errors.New("it is too large")
	}
	if !withoutAliases(untrusted) {
		return nil, nil, errors.New("it is not a kubeconfig")
	}
	config, err := clientcmd.Load(untrusted)
	if err != nil {
		return nil, nil, errors.New("it is not a kubeconfig")
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, nil, errors.New("it has no current context")
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, nil, errors.New("its current context names no cluster or no user")
	}
	only := clientcmdapi.NewConfig()
	only.CurrentContext = config.CurrentContext
	only.Contexts[config.CurrentContext] = &clientcmdapi.Context{Cluster: context.Cluster, AuthInfo: context.AuthInfo}
	only.Clusters[context.Cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: cluster.CertificateAuthorityData}
	only.AuthInfos[context.AuthInfo] = &clientcmdapi.AuthInfo{ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData}
	if !equality.Semantic.DeepEqual(config, only) {
		return nil, nil, errors.New("it has more in it than the CloudSpace's own server, a certificate authority and a client certificate")
	}
	return cluster, user, nil
}

// cleanAuthority gives back certificates in PEM, and refuses anything else.
func cleanAuthority(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, errors.New("it has no certificate authority")
	}
	clean := onlyPEM(text, "CERTIFICATE")
	if clean == nil {
		return nil, errors.New("its certificate authority is not a certificate")
	}
	for rest := clean; len(rest) > 0; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, errors.New("its certificate authority cannot be parsed")
		}
	}
	return clean, nil
}

// onlyPEM gives back the PEM blocks of a text, without what stands before or in them; nil when there is a block of another type, or
// anything behind the last.
func onlyPEM(text []byte, types ...string) []byte {
	var clean []byte
	for rest := text; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || !slices.Contains(types, block.Type) {
			return nil
		}
		clean = append(clean, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
	}
	return clean
}

// withoutAliases tells whether a text is YAML in which nothing refers to anything else in it. A few thousand references to one long word
// become gigabytes when they are followed.
func withoutAliases(untrusted []byte) bool {
	var document yaml.Node
	return yaml.Unmarshal(untrusted, &document) == nil && isPlain(&document)
}

func isPlain(node *yaml.Node) bool {
	return node.Kind != yaml.AliasNode && node.Anchor == "" && !slices.ContainsFunc(node.Content, func(n *yaml.Node) bool { return !isPlain(n) })
}
