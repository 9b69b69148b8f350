// Package quickstart runs docs/quickstart.md as a reader would: its commands in
// their terminals, in order, waiting for the output that the page shows. It also
// sees to it that the code on the page is that of the examples.
//
// A block of "sh" begins with "# Terminal N" and goes to that shell. A block of
// "text" is what must appear there, or in the terminal that it names: its lines, in
// any order, and not more often than the page has them. Only /tmp is another folder.
package quickstart
