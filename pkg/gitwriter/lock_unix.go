// SPDX-License-Identifier: Apache-2.0

//go:build unix

package gitwriter

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes the file for this process. The kernel drops it when the process ends, in
// whatever way, so nothing stale is ever left.
func lock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
