// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A chartDesk is a registry with one Helm chart in several versions. Whoever asks for
// the chart by an address without https on loopback gets it, as source-controller does.
type chartDesk struct {
	*httptest.Server
	tags    []string
	content map[string]content // by what the path ends with
}

// A content is a manifest or a blob.
type content struct {
	mediaType string
	bytes     []byte
}

// The chart of the example: what is released is one ConfigMap.
const chartTemplate = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  version: {{ .Chart.Version | quote }}
  features: {{ .Values.features | quote }}
`

func newChartDesk(t *testing.T, name string, versions ...string) *chartDesk {
	t.Helper()
	d := &chartDesk{tags: versions, content: map[string]content{}}
	for _, version := range versions {
		metadata := "apiVersion: v2\nname: " + name + "\nversion: " + version + "\n"
		config, err := json.Marshal(map[string]string{"apiVersion": "v2", "name": name, "version": version})
		must(t, err)
		chart := archive(t, map[string]string{name + "/Chart.yaml": metadata, name + "/templates/app.yaml": chartTemplate})
		manifest, err := json.Marshal(map[string]any{
			"schemaVersion": 2, "mediaType": manifestType,
			"config": d.blob("application/vnd.cncf.helm.config.v1+json", config),
			"layers": []any{d.blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", chart)},
		})
		must(t, err)
		d.content["/manifests/"+version] = content{manifestType, manifest}
		d.content["/manifests/"+digest(manifest)] = content{manifestType, manifest}
	}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	return d
}

const manifestType = "application/vnd.oci.image.manifest.v1+json"

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// blob keeps a blob, and returns what a manifest says of it.
func (d *chartDesk) blob(mediaType string, b []byte) map[string]any {
	d.content["/blobs/"+digest(b)] = content{"application/octet-stream", b}
	return map[string]any{"mediaType": mediaType, "digest": digest(b), "size": len(b)}
}

func (d *chartDesk) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v2/" {
		return
	}
	if repo, ok := strings.CutSuffix(r.URL.Path, "/tags/list"); ok {
		_ = json.NewEncoder(w).Encode(map[string]any{"name": strings.TrimPrefix(repo, "/v2/"), "tags": d.tags})
		return
	}
	for path, c := range d.content {
		if strings.HasSuffix(r.URL.Path, path) {
			w.Header().Set("Content-Type", c.mediaType)
			w.Header().Set("Docker-Content-Digest", digest(c.bytes))
			_, _ = w.Write(c.bytes) // who does not get it says so
			return
		}
	}
	http.NotFound(w, r)
}

// archive packs files as a chart is packed.
func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	for name, text := range files {
		must(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}))
		_, err := w.Write([]byte(text))
		must(t, err)
	}
	must(t, w.Close())
	must(t, z.Close())
	return packed.Bytes()
}
