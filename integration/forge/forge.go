// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"code.gitea.io/sdk/gitea"

	"resourceset.example/renderer/integration/process"
)

// administrator is the first user. The password is needed once, to get a token.
const administrator, password = "admin1", "for-the-tests-alone"

// Options say where things are.
type Options struct {
	Programs string // the folder with the program
	Module   string // the folder of the module that it is built from
}

// A Forge is a running Gitea.
type Forge struct {
	*process.Process
	URL string

	options Options
	dir     string // of its own: the program, its files, its data
	port    int
	admin   *gitea.Client
}

// Start runs a Gitea without repositories. It has to be closed.
func Start(ctx context.Context, options Options) (*Forge, error) {
	dir, err := os.MkdirTemp("", "forge-")
	if err != nil {
		return nil, err
	}
	f := &Forge{options: options, dir: dir}
	if err := f.start(ctx); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close ends the forge and removes what it has on disk.
func (f *Forge) Close() {
	if f.Process != nil {
		f.Stop()
	}
	_ = os.RemoveAll(f.dir) // in the folder for temporary files: no harm if something stays
}

func (f *Forge) start(ctx context.Context) error {
	ports, err := process.FreePorts(1)
	if err != nil {
		return err
	}
	f.port = ports[0]
	f.URL = fmt.Sprintf("http://127.0.0.1:%d", f.port)
	if err := f.install(ctx); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"migrate"},
		{"admin", "user", "create", "--admin", "--username", administrator, "--password", password,
			"--email", administrator + "@example.com", "--must-change-password=false"},
	} {
		if err := f.run(ctx, args...); err != nil {
			return err
		}
	}
	f.Process = f.process("web")
	if err := f.Again(ctx); err != nil {
		return err
	}
	token, err := f.token(ctx)
	if err != nil {
		return err
	}
	f.admin, err = f.client(context.WithoutCancel(ctx), token) // for as long as the forge runs
	return err
}

// Again starts the forge, also after it was killed, and waits until it serves.
func (f *Forge) Again(ctx context.Context) error {
	if err := f.Process.Start(); err != nil {
		return err
	}
	return f.Serves(ctx, http.DefaultClient, f.URL+"/api/healthz")
}

// install lays out what Gitea needs.
func (f *Forge) install(ctx context.Context) error {
	program, err := os.ReadFile(filepath.Join(f.options.Programs, "gitea"))
	if err != nil {
		return fmt.Errorf("%w; `make components` builds it", err)
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "code.gitea.io/gitea")
	cmd.Dir = f.options.Module
	module, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list -m code.gitea.io/gitea: %w", err)
	}
	for _, part := range []string{"templates", "options", "public"} {
		from := os.DirFS(filepath.Join(strings.TrimSpace(string(module)), part))
		if err := os.CopyFS(filepath.Join(f.dir, "static", part), from); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(f.dir, "tmp"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(f.path("app.ini"), []byte(f.configuration()), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(f.path("gitea"), program, 0o755); err != nil {
		return err
	}
	return nil
}

func (f *Forge) path(name string) string { return filepath.Join(f.dir, name) }

// configuration leaves out what no test needs. Its own secrets Gitea makes itself. It
// runs as whoever runs the tests, on machines for that alone also as root.
func (f *Forge) configuration() string {
	return fmt.Sprintf(`WORK_PATH = %[1]s
RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]d
ROOT_URL = %[3]s/
LOCAL_ROOT_URL = %[3]s/
STATIC_ROOT_PATH = %[1]s/static
DISABLE_SSH = true
OFFLINE_MODE = true
LFS_START_SERVER = false
[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
SQLITE_JOURNAL_MODE = WAL
[repository]
ROOT = %[1]s/repositories
DEFAULT_BRANCH = main
[git.config]
core.fsync = none
[security]
INSTALL_LOCK = true
[service]
DISABLE_REGISTRATION = true
[webhook]
ALLOWED_HOST_LIST = loopback
[indexer]
ISSUE_INDEXER_TYPE = db
[api]
MAX_RESPONSE_ITEMS = 10
DEFAULT_PAGING_NUM = 10
[session]
PROVIDER = memory
[actions]
ENABLED = false
[packages]
ENABLED = false
[mailer]
ENABLED = false
[log]
MODE = console
LEVEL = Info
`, f.dir, f.port, f.URL)
}

func (f *Forge) process(args ...string) *process.Process {
	p := &process.Process{
		Name: "gitea", Path: f.path("gitea"), Args: append(args, "--config", f.path("app.ini")),
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "TMPDIR=" + f.path("tmp")},
		Dir: f.dir, Log: f.path("gitea.log"),
	}
	return p
}

// run executes one of Gitea's commands to its end.
func (f *Forge) run(ctx context.Context, args ...string) error {
	p := f.process(args...)
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Env, cmd.Dir = p.Env, p.Dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("gitea %s: %w\n%s", strings.Join(args[:1], " "), err, out)
	}
	return nil
}

func (f *Forge) client(ctx context.Context, token string) (*gitea.Client, error) {
	return gitea.NewClient(f.URL, gitea.SetContext(ctx), gitea.SetToken(token), gitea.SetGiteaVersion(""))
}

// token is one with which the administrator may do everything.
func (f *Forge) token(ctx context.Context) (string, error) {
	c, err := gitea.NewClient(f.URL, gitea.SetContext(ctx), gitea.SetBasicAuth(administrator, password), gitea.SetGiteaVersion(""))
	if err != nil {
		return "", err
	}
	t, _, err := c.CreateAccessToken(gitea.CreateAccessTokenOption{Name: "tests", Scopes: []gitea.AccessTokenScope{gitea.AccessTokenScopeAll}})
	if err != nil {
		return "", err
	}
	return t.Token, nil
}
