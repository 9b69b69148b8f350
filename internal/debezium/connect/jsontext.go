package connect

import "unicode/utf8"

const upperHex = "0123456789ABCDEF"

// appendQuoted appends a string as Jackson writes it: everything below U+0020, the
// quote and the backslash are escaped, and so is what UTF-16 needs a surrogate
// for; all else is plain UTF-8.
func appendQuoted[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= 0x20 && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := decode(text[i:])
			if r <= 0xffff && n > 1 && (r < 0xd800 || r > 0xdfff) {
				i += n
				continue
			}
			dst = append(dst, text[start:i]...)
			switch {
			case n == 1: // not UTF-8
				dst = utf8.AppendRune(dst, utf8.RuneError)
			case r > 0xffff:
				dst = appendEscape(dst, 0xd800+uint16((r-0x10000)>>10))
				dst = appendEscape(dst, 0xdc00+uint16((r-0x10000)&0x3ff))
			default:
				dst = appendEscape(dst, uint16(r))
			}
			i += n
			start = i
			continue
		}
		dst = append(dst, text[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = appendEscape(dst, uint16(c))
		}
		i++
		start = i
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}

// decode is utf8.DecodeRune which also knows unpaired surrogates.
func decode[T string | []byte](text T) (rune, int) {
	var b [utf8.UTFMax]byte
	n := copy(b[:], text)
	if u, ok := surrogate(b[:n]); ok {
		return rune(u), 3
	}
	return utf8.DecodeRune(b[:n])
}

func appendEscape(dst []byte, unit uint16) []byte {
	return append(dst, '\\', 'u', upperHex[unit>>12], upperHex[unit>>8&15], upperHex[unit>>4&15], upperHex[unit&15])
}
