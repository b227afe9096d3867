// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package process

import "syscall"

func attributes(user *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: user, Setpgid: true}
}
