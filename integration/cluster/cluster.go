// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"

	"resourceset.example/renderer/integration/process"
	"resourceset.example/renderer/internal/forgetest"
)

// Namespace is where Flux has its own objects.
const Namespace = "flux-system"

// Options say where things are.
type Options struct {
	Programs string // the folder with the programs
	Module   string // the folder of the module that they are built from
	Dir      string // an empty folder for data, logs and credentials
}

// A Cluster is a running cluster. Its parts may be killed and started again.
type Cluster struct {
	*Client
	Etcd, API                       *process.Process
	Notify, Source, Kustomize, Helm *process.Process

	options    Options
	url        string
	token      string
	ca         string // file
	kubeconfig string // file
	ports      ports
}

// ports are those that the parts listen on, each on 127.0.0.1.
type ports struct {
	etcd, peer, api                          int
	artifacts, sourceHealth, kustomizeHealth int
	sourceMetrics, kustomizeMetrics          int
	events, hooks                            int // of notification-controller
	notifyHealth, notifyMetrics              int
	helmHealth, helmMetrics                  int
}

// Start runs a cluster, without the controllers of Flux so far. It can be used when
// Start returns, and has to be closed.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c := &Cluster{options: options, token: "the-token-of-the-tests"}
	if err := c.start(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	free, err := process.FreePorts(14)
	if err != nil {
		return err
	}
	c.ports = ports{
		etcd: free[0], peer: free[1], api: free[2], artifacts: free[3],
		sourceHealth: free[4], kustomizeHealth: free[5], sourceMetrics: free[6], kustomizeMetrics: free[7],
		events: free[8], hooks: free[9], notifyHealth: free[10], notifyMetrics: free[11],
		helmHealth: free[12], helmMetrics: free[13],
	}
	c.url = "https://" + address(c.ports.api)
	if err := c.credentials(); err != nil {
		return err
	}
	if c.Client, err = newClient(c.config()); err != nil {
		return err
	}
	if c.Etcd, err = c.etcd(); err != nil {
		return err
	}
	if c.API, err = c.apiServer(); err != nil {
		return err
	}
	if err := c.startStore(ctx); err != nil {
		return err
	}
	if err := c.StartAPI(ctx); err != nil {
		return err
	}
	if err := c.types(ctx); err != nil {
		return err
	}
	return c.CreateNamespace(ctx, Namespace)
}

// Close ends all parts, in the order in which nobody misses another.
func (c *Cluster) Close() {
	for _, p := range []*process.Process{c.Kustomize, c.Helm, c.Source, c.Notify, c.API, c.Etcd} {
		if p != nil {
			p.Stop()
		}
	}
}

// Logs is the end of what each part logged.
func (c *Cluster) Logs() string {
	var logs []string
	for _, p := range []*process.Process{c.Etcd, c.API, c.Notify, c.Source, c.Kustomize, c.Helm} {
		if p != nil {
			logs = append(logs, p.Tail())
		}
	}
	return strings.Join(logs, "\n")
}

// Kubeconfig is a file with which kubectl is an administrator of the cluster.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// StartAPI starts the API server, again if it was killed, and waits until it serves.
func (c *Cluster) StartAPI(ctx context.Context) error {
	if err := c.API.Start(); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(c.config())
	if err != nil {
		return err
	}
	return c.API.Serves(ctx, client, c.url+"/readyz")
}

func (c *Cluster) startStore(ctx context.Context) error {
	if err := c.Etcd.Start(); err != nil {
		return err
	}
	return c.Etcd.Serves(ctx, http.DefaultClient, "http://"+address(c.ports.etcd)+"/health")
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// program is a part that is not running yet.
func (c *Cluster) program(name string, env []string, args ...string) (*process.Process, error) {
	path := filepath.Join(c.options.Programs, name)
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("%w; `make components` builds it", err)
	}
	home := filepath.Join(c.options.Dir, name)
	tmp := filepath.Join(home, "tmp")
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return nil, err
	}
	env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + tmp}, env...)
	return &process.Process{Name: name, Path: path, Args: args, Env: env, Dir: home, Log: home + ".log"}, nil
}

func (c *Cluster) etcd() (*process.Process, error) {
	client, peer := "http://"+address(c.ports.etcd), "http://"+address(c.ports.peer)
	return c.program("etcd", nil,
		"--data-dir", filepath.Join(c.options.Dir, "etcd", "data"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer,
		"--unsafe-no-fsync", // the disk may be slow, and the data lives as long as the test
		"--log-level", "warn")
}

func (c *Cluster) apiServer() (*process.Process, error) {
	file := func(name string) string { return filepath.Join(c.options.Dir, name) }
	return c.program("kube-apiserver", nil,
		"--etcd-servers", "http://"+address(c.ports.etcd),
		"--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--secure-port", fmt.Sprint(c.ports.api),
		"--tls-cert-file", file("tls.crt"), "--tls-private-key-file", file("tls.key"), "--cert-dir", file("kube-apiserver"),
		"--token-auth-file", file("tokens.csv"),
		"--authorization-mode", "RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc",
		// A certificate will do as the public key of the other file.
		"--service-account-key-file", file("tls.crt"), "--service-account-signing-key-file", file("tls.key"),
		"--service-cluster-ip-range", "10.0.0.0/24",
		"--endpoint-reconciler-type", "none",
		// Nobody gives a namespace its service account here.
		"--disable-admission-plugins", "ServiceAccount")
}

// credentials writes the certificate of the API server and who may do what.
func (c *Cluster) credentials() error {
	ca, err := forgetest.NewCA()
	if err != nil {
		return err
	}
	cert, key, err := ca.Issue("kube-apiserver")
	if err != nil {
		return err
	}
	c.ca, c.kubeconfig = filepath.Join(c.options.Dir, "ca.crt"), filepath.Join(c.options.Dir, "kubeconfig")
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: test, user: {token: %q}}]
`, c.url, c.ca, c.token)
	return errors.Join(
		os.WriteFile(c.ca, ca.PEM(), 0o644),
		os.WriteFile(filepath.Join(c.options.Dir, "tls.crt"), cert, 0o644),
		os.WriteFile(filepath.Join(c.options.Dir, "tls.key"), key, 0o600),
		os.WriteFile(filepath.Join(c.options.Dir, "tokens.csv"), []byte(c.token+",tests,tests,system:masters\n"), 0o600),
		os.WriteFile(c.kubeconfig, []byte(kubeconfig), 0o600),
	)
}

func (c *Cluster) config() *rest.Config {
	return &rest.Config{
		Host:            c.url,
		BearerToken:     c.token,
		TLSClientConfig: rest.TLSClientConfig{CAFile: c.ca},
		QPS:             -1, // the server decides what is too much
		UserAgent:       "tests",
	}
}
