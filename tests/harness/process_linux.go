package harness

import "syscall"

// attributes give a process a group of its own, and have the kernel kill it if
// the test's process dies without ending it: at a time-out, or by a kill.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
