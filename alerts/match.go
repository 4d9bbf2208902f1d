package alerts

import "strings"

// Matches reports whether name is what pattern describes: * stands for any text, ?
// for one byte, and a backslash takes the meaning from what follows.
func Matches(pattern, name string) bool {
	p, n := 0, 0
	star, from := -1, 0 // where to go on when the text after the last * does not fit
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, from = p, n
			p++
			continue
		}
		if width := single(pattern[p:], name[n]); width > 0 {
			p, n = p+width, n+1
			continue
		}
		if star < 0 {
			return false
		}
		from++
		p, n = star+1, from
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// single returns the length of the beginning of the pattern that stands for the byte c, 0 if it
// does not.
func single(pattern string, c byte) int {
	switch {
	case pattern == "":
		return 0
	case pattern[0] == '\\' && len(pattern) > 1:
		if pattern[1] == c {
			return 2
		}
		return 0
	case pattern[0] == '?' || pattern[0] == c:
		return 1
	}
	return 0
}
