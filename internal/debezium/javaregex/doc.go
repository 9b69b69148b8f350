// Package javaregex matches what java.util.regex.Pattern matches, or refuses the
// pattern.
//
// A connector's configuration holds Java's regular expressions: the lists of
// tables, and the rule that makes topics. A topic decides where a record goes, so
// "nearly the same" will not do. Compile reads the pattern as Java does and writes
// it anew for Go's regexp, with every character class spelled out; what the two
// engines do not do alike it refuses, with an *Error that says which part and why.
//
// Both engines prefer the leftmost match and, of those, the one that a
// backtracking search finds first, so alternatives, greedy and reluctant
// quantifiers and groups agree. What differs and is written anew: the dot (Java
// knows five line terminators), \s, \h and \v, the POSIX classes of ASCII, unions
// and intersections of classes, \Q…\E, octal and other escapes, and matching
// without regard to case, which in Java concerns ASCII alone.
//
// Refused: look-around, atomic groups, possessive quantifiers and back-references,
// which Go does not have; \b, \R, \X, \N{…} and Unicode properties, which depend
// on Java's version; \G and \Z; the flags d, m, u, U and x; $ where something follows
// it; more than 1000 repetitions. Good for matching but not for replacing: a
// repetition of what can match nothing, where the engines disagree about when to
// stop, and groups inside a repeated group, which Java leaves set after attempts
// that failed.
//
// Strings are UTF-8 without lone surrogates, as PostgreSQL gives them.
package javaregex
