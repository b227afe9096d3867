// SPDX-License-Identifier: Apache-2.0

//go:build unix

package gitwriter

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	// lockPatience is how long a lock that somebody has is tried again: a process that is
	// ending, or that is just starting another one, has it for a moment longer.
	lockPatience = time.Second
	lockPause    = 10 * time.Millisecond
)

// lock takes the file for this process. The kernel drops it when the process ends, in
// whatever way, so nothing stale is ever left.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPause) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			break
		}
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
