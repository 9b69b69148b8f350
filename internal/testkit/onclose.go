package testkit

// OnClose runs f when the tests are over, after which Main exits. Call it before
// Main.
func OnClose(f func() error) { suite.onClose(f) }
