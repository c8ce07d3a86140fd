// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package cloudspace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/tantilium/cloud-runner/internal/names"
)

// seeds reads the files of testdata that match.
func seeds(tb testing.TB, pattern string) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no seeds in testdata/%s: %v", pattern, err)
	}
	texts := map[string][]byte{}
	for _, path := range paths {
		if texts[path], err = os.ReadFile(path); err != nil {
			tb.Fatal(err)
		}
	}
	return texts
}

// kubeconfigSeeds are those of testdata/kubeconfigs with the server of a CloudSpace and a real certificate and key in them.
func kubeconfigSeeds(tb testing.TB, n names.CloudSpace) map[string][]byte {
	tb.Helper()
	id, encode := newIdentity(tb), base64.StdEncoding.EncodeToString
	fill := strings.NewReplacer("SERVER", n.Endpoint(), "AUTHORITY", encode(id.certificate), "CERTIFICATE", encode(id.certificate), "KEY", encode(id.key))
	texts := seeds(tb, "kubeconfigs/*.yaml")
	for path, text := range texts {
		texts[path] = []byte(fill.Replace(string(text)))
	}
	return texts
}

// The fuzz test below proves nothing when nothing is accepted.
func TestSeedsAreRefusedAndAcceptedAsTheirNamesSay(t *testing.T) {
	n := grantedScope(testCloudSpace("staging")).names
	for path, text := range kubeconfigSeeds(t, n) {
		_, err := rebuildKubeconfig(text, n, n.Endpoint())
		if accepted := strings.HasSuffix(path, "-accepted.yaml"); accepted != (err == nil) {
			t.Errorf("%s: got %v, want it accepted: %v", path, err, accepted)
		}
	}
}

// Whatever stands in the Secret of a host namespace: there is no panic, and what comes of it leads to our server, with a
// certificate in place and nothing else.
func FuzzRebuildKubeconfig(f *testing.F) {
	names := grantedScope(testCloudSpace("staging")).names
	for _, text := range kubeconfigSeeds(f, names) {
		f.Add(text)
	}
	const name = "cloudspace-alice-default--staging"
	f.Fuzz(func(t *testing.T, untrusted []byte) {
		got, err := rebuildKubeconfig(untrusted, names, names.Endpoint())
		if err != nil {
			if got != nil {
				t.Fatalf("there are credentials beside the error %v", err)
			}
			return
		}
		config, err := clientcmd.Load(got.text)
		if err != nil {
			t.Fatalf("what was made is no kubeconfig: %v", err)
		}
		cluster, user := config.Clusters[name], config.AuthInfos[name]
		if cluster == nil || user == nil || len(user.ClientCertificateData) == 0 || len(user.ClientKeyData) == 0 {
			t.Fatalf("something is missing in:\n%s", got.text)
		}
		want := clientcmdapi.NewConfig()
		want.CurrentContext = name
		want.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		want.Clusters[name] = &clientcmdapi.Cluster{
			Server:                   "https://alice-default--staging.vcluster-alice-default--staging.svc:443",
			CertificateAuthorityData: cluster.CertificateAuthorityData,
		}
		want.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData}
		wanted, err := clientcmd.Write(*want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(wanted, got.text) {
			t.Fatalf("something was taken over (-want +got):\n%s", cmp.Diff(string(wanted), string(got.text)))
		}
		if got.expires.IsZero() {
			t.Fatal("there is no end of the validity")
		}
	})
}

// Whatever Flux, or somebody who can write in its place, says of a release: there is no panic, and Ready is only said of the
// generation that was seen, with the wanted version deployed.
func FuzzJudge(f *testing.F) {
	const asked = "0.36.1"
	missing, err := yaml.YAMLToJSON(seeds(f, "helmchart-missing.yaml")["testdata/helmchart-missing.yaml"])
	if err != nil {
		f.Fatal(err)
	}
	for path, text := range seeds(f, "helmreleases/*.yaml") {
		seed, err := yaml.YAMLToJSON(text)
		if err != nil {
			f.Fatalf("%s: %v", path, err)
		}
		f.Add(seed, missing, asked)
		f.Add(seed, []byte("null"), recordedVersion(decoded(f, path, &helmv2.HelmRelease{})))
	}
	f.Add([]byte(`{"status":{"history":[null,{"version":1},null]}}`), []byte("null"), asked)
	f.Fuzz(func(t *testing.T, releaseText, chartText []byte, wantVersion string) {
		release, chart := &helmv2.HelmRelease{}, &sourcev1.HelmChart{}
		if json.Unmarshal(releaseText, release) != nil || json.Unmarshal(chartText, &chart) != nil {
			return
		}
		before := release.DeepCopy()
		got := judge(release, chart, wantVersion)
		if err := got.asError(roleControlPlane); (err == nil) != (got.state == releaseReady) {
			t.Fatalf("the step that waits for it says %v of %s", err, got.state)
		}
		if got.state != releaseReady {
			return
		}
		switch latest := latestRelease(before); {
		case before.Status.ObservedGeneration != before.Generation:
			t.Fatalf("ready with generation %d, of which %d was seen", before.Generation, before.Status.ObservedGeneration)
		case current(before, "Ready") == nil || current(before, "Ready").Status != "True":
			t.Fatalf("ready, while Flux says %+v", before.Status.Conditions)
		case latest == nil || latest.Status != "deployed" || withoutBuild(latest.ChartVersion) != withoutBuild(wantVersion):
			t.Fatalf("ready with %+v, want %s", latest, wantVersion)
		case before.Spec.Suspend || before.DeletionTimestamp != nil:
			t.Fatal("ready, while it is suspended or on its way out")
		}
	})
}
