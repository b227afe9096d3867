// SPDX-License-Identifier: Apache-2.0

package gitwriter

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

var (
	// ErrTimeout is a server that sent nothing for longer than Config.Timeout.
	ErrTimeout = errors.New("no answer in time")
	// ErrLocked is a mirror folder that another process, or another Mirror, has open.
	ErrLocked = errors.New("the folder is in use by another process")
	// ErrForeignDirectory is a folder with content that is not a mirror of ours.
	ErrForeignDirectory = errors.New("the folder is not empty and was not made by this program")
	// ErrSHA256 is a repository whose object names are SHA-256.
	ErrSHA256 = errors.New("the repository uses SHA-256 object names, which are not supported")
	// ErrClosed is any use of a Mirror after Close.
	ErrClosed = errors.New("the mirror is closed")
)

// An AuthError is a server that did not accept the credentials, or an SSH server that
// is not the one that known_hosts names.
type AuthError struct {
	URL    string // without credentials
	Reason string
	Hint   string
	Status int // of HTTP: 401 or 403; 0 for SSH
}

func (e *AuthError) Error() string { return e.URL + ": " + e.Reason }

// Suggestion says what to do about it.
func (e *AuthError) Suggestion() string { return e.Hint }

// A NotFoundError is a repository that does not exist, or that these credentials may
// not see.
type NotFoundError struct{ URL string }

func (e *NotFoundError) Error() string {
	return e.URL + ": repository not found, or not visible to these credentials"
}

// Suggestion says what to do about it.
func (e *NotFoundError) Suggestion() string {
	return "check the URL; many servers answer the same for a repository that the credentials may not read"
}

// A RefusedError is a push that the server read and did not want: the branch still is
// where it was.
type RefusedError struct {
	URL, Branch string
	Text        string // what the server said, without our credentials
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: push to %s refused: %s", e.URL, e.Branch, e.Text)
}

// Suggestion says what to do about it.
func (e *RefusedError) Suggestion() string {
	return "the server's rules for this branch (protection, hooks, permissions) do not allow the push; nothing was changed"
}

// A RaceError is an Update that lost against other writers until it gave up.
type RaceError struct {
	URL, Branch string
	Attempts    int
	Elapsed     time.Duration
}

func (e *RaceError) Error() string {
	return fmt.Sprintf("%s: %s was moved by others in each of %d attempts over %s",
		e.URL, e.Branch, e.Attempts, e.Elapsed.Round(time.Millisecond))
}

// A ServerError is an answer that is neither Git data nor one of the cases above.
type ServerError struct {
	URL    string
	Status int // of HTTP, or 0
	Text   string
	Err    error // what reading the answer ended with, or nil
}

// Unwrap is the cause.
func (e *ServerError) Unwrap() error { return e.Err }

func (e *ServerError) Error() string {
	text := e.URL + ": "
	if e.Status != 0 {
		text += fmt.Sprintf("status %d: ", e.Status)
	}
	return strings.TrimSuffix(text+e.Text, ": ")
}

// A PathError is a path that cannot be written: it is not a valid one, or what the
// repository holds there must not be followed or replaced.
type PathError struct {
	Path   string
	Reason string
	Kind   Kind // what stands in the way, or KindNone
}

func (e *PathError) Error() string { return fmt.Sprintf("path %q %s", e.Path, e.Reason) }

// Suggestion says what to do about it.
func (e *PathError) Suggestion() string {
	if e.Kind == KindNone {
		return ""
	}
	return "remove it from the branch, or choose another target path"
}

// A FolderError is a folder for the mirror that cannot be used.
type FolderError struct {
	Folder string
	Err    error
}

func (e *FolderError) Error() string {
	cause := e.Err
	var path *fs.PathError
	if errors.As(cause, &path) {
		cause = path.Err
	}
	return fmt.Sprintf("state folder %s: %v", e.Folder, cause)
}

// Unwrap is the cause.
func (e *FolderError) Unwrap() error { return e.Err }

// Suggestion says what to do about it.
func (e *FolderError) Suggestion() string {
	return "it is made where it is missing: see that no file is in its way and that this user may write there, or name another one"
}
