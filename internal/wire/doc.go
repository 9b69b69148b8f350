// Package wire builds a running instance out of the configuration: which part
// gets which option is decided here and nowhere else. "walpost run" and the demo
// share it, so that the demo shows the product.
package wire
