// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Complete is written last: a folder without it is half done and is made anew.
const Complete = "complete"

// Ensure fills folder with everything that the daemons of site need, unless it is there already. server is the URL at which
// daemons reach the API server.
func Ensure(folder, server string, site Site) error {
	_, err := os.Stat(filepath.Join(folder, Complete))
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make folder for certificates: %w", err)
	}
	ca, err := newAuthority("hostcluster")
	if err != nil {
		return err
	}
	writer := writer{folder: folder}
	writer.authority("ca", ca)
	for name, s := range site.servers() {
		writer.issued(name, ca, s)
	}
	for name, s := range site.clients() {
		writer.kubeconfig(name, ca, s, server)
	}
	if err := writer.frontProxy(); err != nil {
		return err
	}
	if err := writer.serviceAccountKey(); err != nil {
		return err
	}
	writer.file(Complete, nil)
	return errors.Join(writer.errs...)
}

// writer writes files into one folder and keeps what went wrong for the end.
type writer struct {
	folder string
	errs   []error
}

func (w *writer) file(name string, data []byte) {
	if err := os.WriteFile(filepath.Join(w.folder, name), data, 0o600); err != nil {
		w.errs = append(w.errs, fmt.Errorf("write certificate file: %w", err))
	}
}

func (w *writer) authority(name string, a *authority) {
	key, err := keyutil.MarshalPrivateKeyToPEM(a.key)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("encode key of %s: %w", name, err))
		return
	}
	certificate, err := cert.EncodeCertificates(a.certificate)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("encode certificate of %s: %w", name, err))
		return
	}
	w.file(name+".crt", certificate)
	w.file(name+".key", key)
}

func (w *writer) issued(name string, by *authority, s subject) {
	certificate, key, err := by.issue(s)
	if err != nil {
		w.errs = append(w.errs, err)
		return
	}
	w.file(name+".crt", certificate)
	w.file(name+".key", key)
}

func (w *writer) kubeconfig(name string, by *authority, s subject, server string) {
	certificate, key, err := by.issue(s)
	if err != nil {
		w.errs = append(w.errs, err)
		return
	}
	authority, err := cert.EncodeCertificates(by.certificate)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("encode authority: %w", err))
		return
	}
	config := api.NewConfig()
	config.Clusters["hostcluster"] = &api.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[s.name] = &api.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key}
	config.Contexts["hostcluster"] = &api.Context{Cluster: "hostcluster", AuthInfo: s.name}
	config.CurrentContext = "hostcluster"
	data, err := clientcmd.Write(*config)
	if err != nil {
		w.errs = append(w.errs, fmt.Errorf("encode kubeconfig of %s: %w", name, err))
		return
	}
	w.file(name+".kubeconfig", data)
}

// frontProxy makes the second authority, by which aggregated API servers know that a request comes from the API server.
func (w *writer) frontProxy() error {
	ca, err := newAuthority("hostcluster-front-proxy")
	if err != nil {
		return err
	}
	w.authority("front-proxy-ca", ca)
	w.issued("front-proxy", ca, client("front-proxy-client"))
	return nil
}

func (w *writer) serviceAccountKey() error {
	key, err := newKey()
	if err != nil {
		return err
	}
	data, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encode service account key: %w", err)
	}
	w.file("service-account.key", data)
	return nil
}

// Redirect rewrites the kubeconfig at from so that its cluster is reached at server, and writes it to the file to, readable
// by its owner only.
func Redirect(from, to, server string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = server
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig: %w", err)
	}
	return os.WriteFile(to, data, 0o600)
}
