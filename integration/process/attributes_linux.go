// SPDX-License-Identifier: Apache-2.0

package process

import "syscall"

// attributes has the kernel end the program when the tests end without their cleanup.
func attributes(user *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: user, Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
