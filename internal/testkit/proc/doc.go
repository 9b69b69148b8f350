// Package proc starts the server processes of the test kit and keeps what they
// need from the machine: a user to run as, ports, and folders.
//
// Guarantee: whatever is started here ends when the process that started it
// ends, even by SIGKILL (on Linux, by the parent death signal), and whatever is
// created here is deleted by Remove or, after a crash of the owner, by the next
// process that creates a folder.
//
// A parent death signal fires when the *thread* that forked ends, not the
// process. So each child has a goroutine of its own, locked to its thread, that
// starts it and waits for it: the thread lives exactly as long as the child.
//
// It does not restart anything and knows nothing of the servers.
package proc
