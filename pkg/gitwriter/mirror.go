// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
)

// Defaults of Config.
const (
	DefaultTimeout     = time.Minute
	DefaultMaxAttempts = 200
)

// Config says which branch is mirrored, where, and how the server is reached.
type Config struct {
	URL       string // https://, http://, ssh://, user@host:path or file:///path
	Branch    string // "main" if empty
	Directory string // where the mirror is kept; a cache that may be lost

	Auth Auth
	// Credentials, if set, is asked before every conversation with the server instead of
	// Auth, so that credentials may change while the program runs. After the server did
	// not accept them it is asked once more, with rejected set.
	Credentials func(ctx context.Context, rejected bool) (Auth, error)

	// Timeout is how long a server may be silent: DefaultTimeout if zero. A whole
	// conversation may take thirty times as long.
	Timeout     time.Duration
	MaxAttempts int // pushes that one Update tries against other writers: DefaultMaxAttempts if zero
	UserAgent   string
	// HTTPClient, if set, is used for http(s) in place of one of our own. It adds the
	// credentials itself, and its errors are handed on as they are.
	HTTPClient *http.Client
	Now        func() time.Time // the time of commits: time.Now if nil
	Signer     Signer           // nil: commits are not signed
	Logger     *slog.Logger     // nil: silent
}

// Auth is what the server asks for. Which fields count depends on the URL.
type Auth struct {
	Username, Password string // http(s)
	BearerToken        string // http(s), instead of a password
	CAFile             []byte // https: PEM certificates to trust besides the system's
	ClientCert         []byte // https: PEM
	ClientKey          []byte // https: PEM

	Identity   []byte // ssh: private key, PEM
	Passphrase string // ssh: of the private key
	KnownHosts []byte // ssh: the host keys to accept, as in OpenSSH's known_hosts
}

const (
	mirrorFormat = 1
	markerName   = "mirror.json"
	lockName     = "lock"
	mirrorRef    = plumbing.ReferenceName("refs/heads/mirror")
)

// A marker says whose folder this is, and which generation of it is in use.
type marker struct {
	Format     int    `json:"format"`
	URL        string `json:"url"` // without credentials
	Branch     string `json:"branch"`
	Generation int    `json:"generation"`
}

// String names the branch of a repository.
func (m marker) String() string { return m.URL + " " + m.Branch }

// A Mirror is a bare shallow copy of one branch. See the package's comment.
type Mirror struct {
	cfg    Config
	remote endpoint
	lock   *os.File

	mu       sync.Mutex // one conversation at a time
	marker   marker
	store    *store // nil: nothing fetched yet, or not usable
	previous *store // the generation before, for snapshots still in use
	snapshot *Snapshot
	// confirmed is when the server last named the snapshot as the branch's head.
	confirmed time.Time
	// distrusted is the head for which a damaged mirror was last made anew.
	distrusted plumbing.Hash
	maxPack    int64 // bytes of a packfile; 0: as many as there are
	client     *httpClient
	closed     bool

	receivePack *receivePack   // nil: not asked yet
	lingering   sync.WaitGroup // conversations whose server is tidying up
	giveWay     time.Time      // after a change that landed among others' ones: their turn until then
}

var generationName = regexp.MustCompile(`^mirror-([0-9]{6})\.git$`)

// Open checks the configuration and takes the folder, which is made if it does not
// exist. It does not talk to the server. A folder that holds a mirror of something else,
// or a damaged one, is made anew by the next fetch; one that holds other things than a
// mirror is an error and is left alone.
func Open(cfg Config) (*Mirror, error) {
	m, err := newMirror(cfg)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(m.cfg.Directory, 0o700); err != nil {
		return nil, &FolderError{Folder: m.cfg.Directory, Err: err}
	}
	if err := m.checkOurs(); err != nil {
		return nil, err
	}
	if m.lock, err = lock(filepath.Join(m.cfg.Directory, lockName)); err != nil {
		return nil, fmt.Errorf("mirror %s: %w", m.cfg.Directory, err)
	}
	if err := m.load(); err != nil {
		m.lock.Close()
		return nil, err
	}
	return m, nil
}

func newMirror(cfg Config) (*Mirror, error) {
	if cfg.Branch == "" {
		cfg.Branch = "main"
	}
	if err := plumbing.NewBranchReferenceName(cfg.Branch).Validate(); err != nil {
		return nil, fmt.Errorf("branch %q: not a valid branch name", cfg.Branch)
	}
	if cfg.Directory == "" {
		return nil, errors.New("no folder given for the mirror")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.MaxAttempts <= 0 {
		cfg.MaxAttempts = DefaultMaxAttempts
	}
	if cfg.UserAgent == "" {
		cfg.UserAgent = "git/renderer"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	remote, err := parseEndpoint(cfg.URL)
	if err != nil {
		return nil, err
	}
	m := &Mirror{cfg: cfg, remote: remote}
	if cfg.Credentials == nil {
		if err := checkAuth(remote, cfg.Auth); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// checkOurs refuses a folder with content that this package did not make. A folder
// without the marker may be ours all the same: the process was killed before the first
// marker was in place, or the marker was lost.
func (m *Mirror) checkOurs() error {
	names, err := os.ReadDir(m.cfg.Directory)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name.Name() == markerName {
			return nil
		}
	}
	for _, name := range names {
		if name.Name() != lockName && name.Name() != markerName+".tmp" && !generationName.MatchString(name.Name()) {
			return &ForeignDirectoryError{Directory: m.cfg.Directory}
		}
	}
	return nil
}

// A ForeignDirectoryError names a folder that Open leaves alone. It is ErrForeignDirectory.
type ForeignDirectoryError struct{ Directory string }

func (e *ForeignDirectoryError) Error() string {
	return fmt.Sprintf("mirror %s: %v", e.Directory, ErrForeignDirectory)
}

// Unwrap makes errors.Is work with the sentinel.
func (e *ForeignDirectoryError) Unwrap() error { return ErrForeignDirectory }

// Suggestion says what to do about it.
func (e *ForeignDirectoryError) Suggestion() string {
	return "name an empty folder, or remove this one: the mirror is a cache and is fetched again"
}

// load finds the generation in use. Whatever is wrong with it, the answer is to start
// without one: the folder is ours, and a cache.
func (m *Mirror) load() error {
	want := marker{Format: mirrorFormat, URL: m.remote.display, Branch: m.cfg.Branch}
	data, err := os.ReadFile(filepath.Join(m.cfg.Directory, markerName))
	var have marker
	if err == nil && json.Unmarshal(data, &have) != nil {
		have = marker{}
	}
	want.Generation = have.Generation
	m.marker = want
	if have != want {
		if err == nil {
			m.cfg.Logger.Warn("mirror folder is damaged or of another branch, starting a new one",
				"directory", m.cfg.Directory, "was", have.String(), "is", want.String())
		}
		latest, err := m.latestGeneration()
		if err != nil {
			return err
		}
		m.marker.Generation = max(have.Generation, latest) + 1 // none that is there, whosever it is
		if err := m.writeMarker(); err != nil {
			return err
		}
	}
	if err := m.removeOldGenerations(); err != nil {
		return err
	}
	dir := m.generationDir(m.marker.Generation)
	if _, err := os.Stat(dir); err != nil {
		return nil // nothing fetched yet
	}
	packs, _ := filepath.Glob(filepath.Join(dir, "objects", "pack", "*.pack"))
	if err := m.adopt(openStore(dir)); errors.Is(err, errNoHead) && len(packs) == 0 {
		m.cfg.Logger.Debug("mirror is one whose first fetch did not end, starting a new one", "directory", dir)
	} else if err != nil {
		m.cfg.Logger.Warn("mirror is damaged, starting a new one", "directory", dir, "error", err)
	}
	return nil
}

// errNoHead is a store in which no fetch has ended.
var errNoHead = errors.New("no head")

// adopt makes a store the one in use, if its head can be read.
func (m *Mirror) adopt(s *store) error {
	err := s.removeLeftovers()
	var head plumbing.Hash
	if err == nil {
		head, err = s.head()
	}
	if err == nil && head.IsZero() {
		err = errNoHead
	}
	var snapshot *Snapshot
	if err == nil {
		snapshot, err = openSnapshot(s, head)
	}
	if err != nil {
		s.close()
		return err
	}
	m.store, m.snapshot = s, snapshot
	return nil
}

func (m *Mirror) generationDir(n int) string {
	return filepath.Join(m.cfg.Directory, fmt.Sprintf("mirror-%06d.git", n))
}

// latestGeneration is the highest number of the repositories in the folder.
func (m *Mirror) latestGeneration() (int, error) {
	names, err := os.ReadDir(m.cfg.Directory)
	if err != nil {
		return 0, err
	}
	latest := 0
	for _, name := range names {
		if match := generationName.FindStringSubmatch(name.Name()); match != nil {
			n, err := strconv.Atoi(match[1])
			if err != nil {
				return 0, err
			}
			latest = max(latest, n)
		}
	}
	return latest, nil
}

// writeMarker replaces the marker at once, so that a crash leaves the old or the new one.
func (m *Mirror) writeMarker() error {
	data, err := json.Marshal(m.marker)
	if err != nil {
		return err
	}
	path := filepath.Join(m.cfg.Directory, markerName)
	if err := os.WriteFile(path+".tmp", append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// removeOldGenerations deletes the repositories that are not in use. Only folders with
// names that this package makes are touched.
func (m *Mirror) removeOldGenerations() error {
	names, err := os.ReadDir(m.cfg.Directory)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(m.cfg.Directory, name.Name())
		inUse := path == m.generationDir(m.marker.Generation) || (m.previous != nil && path == m.previous.dir)
		if inUse || !name.IsDir() || !generationName.MatchString(name.Name()) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

// Close gives the folder up. Snapshots must not be used any more.
func (m *Mirror) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.lingering.Wait()
	var errs []error
	for _, s := range []*store{m.store, m.previous} {
		if s != nil {
			errs = append(errs, s.close())
		}
	}
	if m.client != nil {
		m.client.close()
	}
	return errors.Join(append(errs, m.lock.Close())...)
}
