// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

const (
	serviceUploadPack  = "git-upload-pack"
	serviceReceivePack = "git-receive-pack"

	// conversationFactor times Config.Timeout is how long a conversation may take in all.
	conversationFactor = 30
)

// A conversation is one use of one service of the server: it lists its branches, then
// answers one request.
//
// The library's own transports are not used: they wait for a silent SSH server for ever,
// read the user's ssh configuration, hide the capabilities that Azure DevOps insists on
// unless a package variable is changed for the whole process, and keep HTTP connections
// from being used again. Messages are encoded and decoded by the library all the same.
type conversation struct {
	ctx    context.Context // ends with the watchdog
	dog    *watchdog
	remote endpoint
	agent  string
	hide   redactor
	line   line
	refs   *packp.AdvRefs
	listed bool // refs holds the branches of this moment, not just what the server can do
	// rest is what the server still sends after a push that it has reported on: it runs
	// its hooks and tidies up, and nobody needs to wait for that but Mirror.Close.
	rest io.Closer
}

// A line carries a conversation.
type line interface {
	// list is the server's list of branches, as it sends it.
	list() (io.ReadCloser, error)
	// exchange sends the request and returns the answer.
	exchange(write func(io.Writer) error) (io.ReadCloser, error)
	// hangUp ends the conversation.
	hangUp()
	// explain finds out why the server hung up, where it said so beside the protocol.
	explain() string
}

// A watchdog ends a conversation in which the server was silent for too long.
type watchdog struct {
	timer *time.Timer
	limit time.Duration
}

func (w *watchdog) alive() { w.timer.Reset(w.limit) }

// watch returns a context that ends with ErrTimeout when alive was not called for the limit.
func watch(ctx context.Context, limit time.Duration) (context.Context, *watchdog, func()) {
	ctx, cancelTotal := context.WithTimeoutCause(ctx, conversationFactor*limit, ErrTimeout)
	ctx, cancel := context.WithCancelCause(ctx)
	dog := &watchdog{limit: limit, timer: time.AfterFunc(limit, func() { cancel(ErrTimeout) })}
	return ctx, dog, func() {
		dog.timer.Stop()
		cancel(context.Canceled)
		cancelTotal()
	}
}

// watched tells the watchdog of every byte that passes.
type watched struct {
	dog *watchdog
	io.Reader
	io.Writer
	closer func() error
}

func (w watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.dog.alive()
	}
	return n, err
}

func (w watched) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if n > 0 {
		w.dog.alive()
	}
	return n, err
}

func (w watched) Close() error {
	if w.closer == nil {
		return nil
	}
	return w.closer()
}

// converse opens a conversation, lets talk have it, and ends it. Where credentials can
// be asked for again, a server that does not accept them makes that happen once.
func (m *Mirror) converse(ctx context.Context, service string, talk func(*conversation) error) error {
	auth, err := m.auth(ctx, false)
	if err != nil {
		return err
	}
	err = m.converseAs(ctx, auth, service, talk)
	var denied *AuthError
	if m.cfg.Credentials == nil || !errors.As(err, &denied) || denied.Status != 401 {
		return err
	}
	if auth, err = m.auth(ctx, true); err != nil {
		return err
	}
	return m.converseAs(ctx, auth, service, talk)
}

func (m *Mirror) converseAs(ctx context.Context, auth Auth, service string, talk func(*conversation) error) error {
	ctx, dog, stop := watch(ctx, m.cfg.Timeout)
	c := &conversation{ctx: ctx, dog: dog, remote: m.remote, agent: m.cfg.UserAgent,
		hide: newRedactor(auth, Auth{Username: m.remote.user, Password: m.remote.password})}
	var err error
	if c.line, err = m.dial(c, auth, service); err != nil {
		defer stop()
		return c.fail(err)
	}
	defer func() {
		if c.rest == nil {
			c.line.hangUp()
			stop()
			return
		}
		m.lingering.Go(func() {
			defer stop()
			c.rest.Close()
			c.line.hangUp()
		})
	}()
	if m.resume(c, service) {
		err := c.fail(talk(c))
		if err != nil {
			m.receivePack = nil // next time from the beginning
		}
		return err
	}
	if err := c.readList(); err != nil {
		return c.fail(err)
	}
	c.listed = true
	m.remember(c, service)
	return c.fail(talk(c))
}

// A receivePack is what a server over HTTP said about pushing when it was last asked.
type receivePack struct {
	capabilities *capability.List
	base         string
}

// resume leaves out the list before a push over HTTP, where requests know nothing of
// each other: the branch's head is known from fetching, and the server compares it. That
// makes a push one request instead of two, and the time in which others can be faster
// shorter.
func (m *Mirror) resume(c *conversation, service string) bool {
	line, ok := c.line.(*httpLine)
	if !ok || service != serviceReceivePack || m.receivePack == nil {
		return false
	}
	line.base = m.receivePack.base
	c.refs = packp.NewAdvRefs()
	c.refs.Capabilities = m.receivePack.capabilities
	return true
}

func (m *Mirror) remember(c *conversation, service string) {
	if line, ok := c.line.(*httpLine); ok && service == serviceReceivePack {
		m.receivePack = &receivePack{capabilities: c.refs.Capabilities, base: line.base}
	}
}

func (m *Mirror) dial(c *conversation, auth Auth, service string) (line, error) {
	switch m.remote.scheme {
	case schemeFile:
		return dialFile(c, service)
	case schemeSSH:
		return dialSSH(c, auth, service)
	default:
		return m.dialHTTP(c, auth, service)
	}
}

func (m *Mirror) auth(ctx context.Context, rejected bool) (Auth, error) {
	auth := m.cfg.Auth
	if m.cfg.Credentials != nil {
		var err error
		if auth, err = m.cfg.Credentials(ctx, rejected); err != nil {
			return auth, fmt.Errorf("%s: credentials: %w", m.remote.display, err)
		}
		if err := checkAuth(m.remote, auth); err != nil {
			return auth, err
		}
	}
	return auth.trimmed(), nil
}

// trimmed drops the line breaks that editors and `echo` leave at the end of secrets.
func (a Auth) trimmed() Auth {
	for _, field := range []*string{&a.Username, &a.Password, &a.BearerToken, &a.Passphrase} {
		*field = strings.TrimRight(*field, "\r\n")
	}
	return a
}

// fail turns whatever went wrong into an error that names the repository and no secret.
func (c *conversation) fail(err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(c.ctx); cause != nil {
		return fmt.Errorf("%s: %w", c.remote.display, cause)
	}
	return err
}

// unexpected is an answer that cannot be used.
func (c *conversation) unexpected(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return fmt.Errorf("%s: %w", c.remote.display, cause)
	}
	var refused *pktline.ErrorLine
	if errors.As(err, &refused) {
		return c.classify(refused.Text)
	}
	if isDiskError(err) {
		return err
	}
	if text := c.line.explain(); text != "" {
		return c.classify(text)
	}
	return &ServerError{URL: c.remote.display, Text: c.hide.text(err.Error()), Err: err}
}

// classify reads what servers say in words when they hang up. It only chooses between
// errors: whether a push landed is never decided here.
func (c *conversation) classify(text string) error {
	lower := strings.ToLower(text)
	for _, phrase := range []string{"does not appear to be a git repository", "repository not found", "no such repository",
		"could not be found", "repository does not exist", "does not exist or you do not have access"} {
		if strings.Contains(lower, phrase) {
			return &NotFoundError{URL: c.remote.display}
		}
	}
	for _, phrase := range []string{"permission denied", "access denied", "not allowed", "not authorized", "unauthorized"} {
		if strings.Contains(lower, phrase) {
			return &AuthError{URL: c.remote.display, Reason: c.hide.text(text), Hint: "check the permissions of these credentials"}
		}
	}
	return &ServerError{URL: c.remote.display, Text: c.hide.text(text)}
}

// readList reads the list of branches.
func (c *conversation) readList() error {
	raw, err := c.line.list()
	if err != nil {
		return err
	}
	defer raw.Close()
	// The library reads hashes of 40 digits. A longer one makes it fail with a message
	// that helps nobody, so the beginning is kept to see why.
	first := &prefix{limit: 64 << 10}
	refs := packp.NewAdvRefs()
	err = refs.Decode(io.TeeReader(raw, first))
	if errors.Is(err, packp.ErrEmptyAdvRefs) {
		err = nil
	}
	if bytes.Contains(first.data, []byte("object-format=sha256")) {
		return fmt.Errorf("%s: %w", c.remote.display, ErrSHA256)
	}
	if err != nil {
		return c.unexpected(err)
	}
	c.refs = refs
	return nil
}

// head is where the branch is, or zero if there is none.
func (c *conversation) head(branch string) plumbing.Hash {
	return c.refs.References[plumbing.NewBranchReferenceName(branch).String()]
}

// prefix keeps the first bytes written to it.
type prefix struct {
	data  []byte
	limit int
}

func (h *prefix) Write(p []byte) (int, error) {
	if room := h.limit - len(h.data); room > 0 {
		h.data = append(h.data, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (c *conversation) exchange(write func(io.Writer) error) (io.ReadCloser, error) {
	answer, err := c.line.exchange(write)
	if err != nil {
		return nil, c.fail(err)
	}
	return answer, nil
}

// uploadRequest asks for one commit, with the capabilities that both sides have. Thin
// packs are not asked for: what arrives is stored as it is.
func (c *conversation) uploadRequest(want plumbing.Hash) *packp.UploadPackRequest {
	req := packp.NewUploadPackRequest()
	req.Wants = []plumbing.Hash{want}
	offered := c.refs.Capabilities
	for _, choices := range [][]capability.Capability{
		// Azure DevOps answers 400 to a request without multi_ack. With one have and
		// "done" at once the answers are the same lines.
		{capability.MultiACKDetailed, capability.MultiACK},
		{capability.Sideband64k, capability.Sideband},
		{capability.OFSDelta},
		{capability.NoProgress},
		{capability.Shallow},
	} {
		for _, choice := range choices {
			if offered.Supports(choice) {
				mustSet(req.Capabilities, choice)
				break
			}
		}
	}
	if offered.Supports(capability.Agent) {
		mustSet(req.Capabilities, capability.Agent, c.agent)
	}
	return req
}

// mustSet sets a capability whose form is known to be right.
func mustSet(list *capability.List, name capability.Capability, values ...string) {
	_ = list.Set(name, values...) // fails only for a wrong number of values
}
