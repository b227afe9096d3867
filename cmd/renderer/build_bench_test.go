// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
)

// naiveBuildName is the obvious program for the same task, as a command of the test
// binary.
const naiveBuildName = "naive-build"

// BenchmarkBuildProcess is `renderer build` of many input sets with two objects each,
// as a process of its own from start to end, in turns with the obvious program.
func BenchmarkBuildProcess(b *testing.B) {
	program, err := buildProgram()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1000, 10000} {
		b.Run("inputs="+strconv.Itoa(n), func(b *testing.B) {
			rset, inputs := benchBuildFiles(b, n)
			const rounds = 3
			var ours, naive process
			for range rounds {
				ours.run(b, n, program, "build", "-f", rset, "--inputs-from", inputs)
				naive.run(b, n, naiveBuildName, rset, inputs)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ours.seconds(), "s")
			b.ReportMetric(ours.peak, "peak-MB")
			b.ReportMetric(naive.seconds(), "naive-s")
			b.ReportMetric(naive.peak, "naive-peak-MB")
			b.ReportMetric(naive.seconds()/ours.seconds(), "times-faster")
			b.ReportMetric(naive.peak/ours.peak, "times-smaller")
		})
	}
}

// A process is how long the runs of a program took and how much memory they had.
type process struct {
	times []time.Duration
	peak  float64 // MB, the most of all runs
}

func (p *process) run(b *testing.B, inputs int, program string, args ...string) {
	b.Helper()
	cmd := exec.Command(program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err := cmd.Run()
	p.times = append(p.times, time.Since(began))
	if objects := strings.Count("\n"+stdout.String(), "\nkind: "); err != nil || objects != 2*inputs {
		b.Fatalf("%s: %v, %d objects: %s", program, err, objects, stderr.String())
	}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		p.peak = max(p.peak, float64(usage.Maxrss)/1024) // in KiB on Linux
	}
}

func (p *process) seconds() float64 {
	slices.Sort(p.times)
	return p.times[len(p.times)/2].Seconds()
}

func benchBuildFiles(b *testing.B, n int) (rset, inputs string) {
	b.Helper()
	var sets []map[string]any
	for i := range n {
		sets = append(sets, map[string]any{"id": strconv.Itoa(i), "sha": strconv.FormatInt(int64(i)*2654435761+0xabcdef0123, 16),
			"branch": "feat/branch-" + strconv.Itoa(i), "author": "dev-" + strconv.Itoa(i%100)})
	}
	data, err := json.Marshal(sets)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	rset, inputs = filepath.Join(dir, "rset.yaml"), filepath.Join(dir, "inputs.json")
	if err := errors.Join(os.WriteFile(rset, []byte(previewResourceSet), 0o644), os.WriteFile(inputs, data, 0o644)); err != nil {
		b.Fatal(err)
	}
	return rset, inputs
}

// naiveBuild is the obvious program: for every input set and every resource, make the
// resource text, parse it as a template, execute that, read the YAML; then print all.
func naiveBuild() {
	if err := naiveBuildObjects(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func naiveBuildObjects(rset, inputs string) error {
	var set struct {
		Spec struct {
			Resources []any `json:"resources"`
		} `json:"spec"`
	}
	var sets []map[string]any
	if err := errors.Join(readYAML(rset, &set), readYAML(inputs, &sets)); err != nil {
		return err
	}
	var objects []map[string]any
	for _, in := range sets {
		for _, resource := range set.Spec.Resources {
			object, err := naiveObject(resource, in)
			if err != nil {
				return err
			}
			objects = append(objects, object)
		}
	}
	for _, object := range objects {
		data, err := yaml.Marshal(object)
		if err != nil {
			return err
		}
		fmt.Printf("---\n%s", data)
	}
	return nil
}

func naiveObject(resource any, in map[string]any) (map[string]any, error) {
	text, err := yaml.Marshal(resource)
	if err != nil {
		return nil, err
	}
	funcs := sprig.HermeticTxtFuncMap()
	funcs["inputs"] = func() map[string]any { return in }
	funcs["slugify"] = func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "/", "-") }
	tmpl, err := template.New("").Delims("<<", ">>").Option("missingkey=error").Funcs(funcs).Parse(string(text))
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	if err := tmpl.Execute(&buf, nil); err != nil {
		return nil, err
	}
	var object map[string]any
	return object, yaml.Unmarshal(buf.Bytes(), &object)
}

func readYAML(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return yaml.Unmarshal(data, into)
}

const previewResourceSet = `apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata:
  name: podinfo
  namespace: podinfo-preview
spec:
  resources:
    - apiVersion: source.toolkit.fluxcd.io/v1
      kind: GitRepository
      metadata:
        name: podinfo-<< inputs.id >>
        namespace: podinfo-preview
      spec:
        interval: 1h
        url: https://github.com/stefanprodan/podinfo
        ref:
          commit: << inputs.sha >>
    - apiVersion: helm.toolkit.fluxcd.io/v2
      kind: HelmRelease
      metadata:
        name: podinfo-<< inputs.id >>
        namespace: podinfo-preview
        annotations:
          event.toolkit.fluxcd.io/branch: << inputs.branch | slugify >>
          event.toolkit.fluxcd.io/author: << inputs.author | quote >>
      spec:
        interval: 1h
        releaseName: podinfo-<< inputs.id >>
        chart:
          spec:
            chart: ./charts/podinfo
            sourceRef:
              kind: GitRepository
              name: podinfo-<< inputs.id >>
        values:
          image:
            tag: << inputs.sha >>
          ingress:
            hosts:
              - host: podinfo-<< inputs.id >>.example.com
`
