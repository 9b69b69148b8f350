// Package fetch gets server binaries from Maven artifacts, once, into a cache.
//
// Maven itself does the downloading, so that a user's mirrors, proxies and
// credentials are honoured. An entry of the cache is built under a lock in a
// temporary folder and renamed when it is complete: test binaries that run at
// the same time wait for one another, and a killed one leaves nothing half done.
//
// The cache is a folder of the user's cache directory, or what
// WALPOST_TEST_CACHE names; root, whose home others cannot read, uses the
// temporary directory.
package fetch
