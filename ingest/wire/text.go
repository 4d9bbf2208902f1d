package wire

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gqlstream/ingest/event"
)

// nothings are the words for a missing value of pandas, R, databases and spreadsheets. "none" and
// "NONE" are not among them: they are real classes in stance data, for example.
var nothings = map[string]bool{
	"NA":       true,
	"<NA>":     true,
	"N/A":      true,
	"n/a":      true,
	"NaN":      true,
	"nan":      true,
	"-NaN":     true,
	"-nan":     true,
	"NULL":     true,
	"null":     true,
	"Null":     true,
	"(null)":   true,
	"<null>":   true,
	"(NULL)":   true,
	"None":     true,
	"NaT":      true,
	"nil":      true,
	`\N`:       true,
	"#N/A":     true,
	"#N/A N/A": true,
	"#NA":      true,
	"#NV":      true,
	"#REF!":    true,
	"#VALUE!":  true,
	"#DIV/0!":  true,
	"#NAME?":   true,
	"#NUM!":    true,
	"#NULL!":   true,
	"1.#IND":   true,
	"-1.#IND":  true,
	"1.#QNAN":  true,
	"-1.#QNAN": true,
}

// IsNothing reports whether text is a word for a missing value.
func IsNothing(text string) bool {
	if len(text) < 2 || len(text) > len("undefined") {
		return false
	}
	switch text[0] {
	case 'N', 'n', '#', '<', '(', '\\':
		return nothings[text]
	case 'u':
		return text == "undefined"
	case '-', '1':
		return text[len(text)-1]|0x20 > '9' && nothings[text]
	}
	return false
}

// IsDoubtful reports whether a name means a missing value in some files and a vertex in others.
func IsDoubtful(name string) bool {
	switch name {
	case "-", "--", "---", "?", ".", "_", "*", "#", "none", "NONE", "na", "Na", "Nan", "NAN", "Nil",
		"NIL", "n.a.", "N.A.", "unknown", "Unknown", "missing", "Missing", "empty", "(empty)",
		"(blank)", "[null]", "[deleted]", "[removed]", "deleted":
		return true
	}
	return false
}

// TrimText returns text without surrounding spaces and invisible characters.
func TrimText(text string) string {
	if n := len(text); n == 0 || visible(text[0]) && visible(text[n-1]) {
		return text
	}
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || hidden(r) })
}

// visible reports whether an ASCII character has a glyph.
func visible(c byte) bool { return c-'!' <= '~'-'!' }

// hidden reports whether a character is invisible and not a space. Joiners are parts of words and
// emoji.
func hidden(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'
	return r >= 0xad && r != zeroWidthNonJoiner && r != zeroWidthJoiner &&
		(r == 0xad || r >= 0x200b && r <= 0x200f || r >= 0x202a && r <= 0x202e ||
			r >= 0x2060 && r <= 0x206f || r == 0xfeff)
}

// checkVisible refuses a name in a file with an invisible character: names of two files that differ
// only in it look equal and do not match.
func checkVisible(what, text string) *event.Problem {
	i := 0
	for i < len(text) && text[i] >= ' ' && text[i] < 0x7f {
		i++
	}
	for ; i < len(text); i++ {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case unicode.IsControl(r) || hidden(r):
			return event.Problemf(event.BadID,
				"%s %s has the character %U, which cannot be seen: remove it",
				what, Quote(text), r)
		case r != ' ' && unicode.IsSpace(r):
			return event.Problemf(event.BadID,
				"%s %s has the character %U, which looks like a space: write a space",
				what, Quote(text), r)
		}
		i += size - 1
	}
	return nil
}

// CheckClassName refuses names that no class in a file can have.
func CheckClassName(text string) *event.Problem { return checkVisible("class", text) }

// fileID reads a vertex id from text of a file. It undoes the changes of programs that take ids for
// numbers, and refuses changes that cannot be undone. untyped says that no value in the file has a
// type.
func fileID(text string, untyped bool) (event.ID, *event.Problem) {
	if len(text) > 1 && text[0] == '\'' &&
		(strings.ContainsRune("=+-@\t\r", rune(text[1])) || areDigits(text[1:])) {
		text = text[1:] // spreadsheets read text after this mark as text, not as a formula
	}
	if inner, formula := strings.CutPrefix(text, `="`); formula && strings.HasSuffix(inner, `"`) {
		text = strings.TrimSuffix(inner, `"`) // the formula of a text, as programs write for them
	}
	if len(text) > 2 && strings.Trim(text, "#") == "" {
		return event.ID{}, event.Problemf(event.BadID, "%s is what a spreadsheet shows of a "+
			"column that is too narrow: widen it, and export it again", Quote(text))
	}
	id := event.ParseID(text)
	if id.Name == "" || !isDigit(text[0]) && text[0] != '-' {
		return id, nil
	}
	digits := strings.TrimPrefix(text, "-")
	if areDigits(digits) {
		if strings.Trim(digits, "0") == "" && text[0] == '-' {
			return event.NumberID(0), nil
		}
		return id, nil // negative, or beyond 64 bits: its digits are its name
	}
	if isRounded(digits) {
		return event.ID{}, rounded(text)
	}
	if isGrouped(digits) {
		return event.ID{}, event.Problemf(event.BadID,
			"%s is a number with separators of thousands: export the column as text", Quote(text))
	}
	whole, fraction, point := strings.Cut(digits, ".")
	if !point || !areDigits(whole) || !areDigits(fraction) {
		return id, nil
	}
	n, err := strconv.ParseUint(whole, 10, 64)
	switch zero := strings.Trim(fraction, "0") == ""; {
	case !zero && untyped:
		return event.ID{}, event.Problemf(event.BadID,
			"%s reads as a number, but an id is text or a whole number", Quote(text))
	case !zero:
		return id, nil
	case err != nil || n > event.ExactMax:
		return event.ID{}, rounded(text)
	}
	return event.ParseID(strings.TrimSuffix(text[:len(text)-len(fraction)], ".")), nil
}

// rounded returns the problem of an id that has lost digits.
func rounded(text string) *event.Problem {
	return event.Problemf(event.BadID,
		"%s was rounded by a spreadsheet or a float column: export the column as text", Quote(text))
}

// isRounded reports whether text is a number in the form in which programs write large floats, with
// a comma or a point: 1.23E+18, 1,23E+18, 1e+18, 1.0E18. An exponent after digits alone must have a
// sign, so that hexadecimal ids such as 12e5 do not match.
func isRounded(text string) bool {
	at := strings.LastIndexAny(text, "eE")
	if at < 1 {
		return false
	}
	mantissa, exponent := text[:at], text[at+1:]
	power := strings.TrimLeft(exponent, "+-")
	whole, fraction, point := strings.Cut(strings.Replace(mantissa, ",", ".", 1), ".")
	return len(exponent)-len(power) <= 1 && areDigits(power) && areDigits(whole) &&
		(point && areDigits(fraction) || !point && len(power) < len(exponent))
}

// isGrouped reports whether text is a number such as 1,234,567.
func isGrouped(text string) bool {
	first, rest, grouped := strings.Cut(text, ",")
	if !grouped || len(first) > 3 || !areDigits(first) {
		return false
	}
	for group := range strings.SplitSeq(rest, ",") {
		if len(group) != 3 || !areDigits(group) {
			return false
		}
	}
	return true
}
