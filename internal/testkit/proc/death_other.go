//go:build unix && !linux

package proc

import "syscall"

// Only Linux has a parent death signal; elsewhere a killed test binary leaves
// its servers running.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}
