package files

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/text/unicode/norm"

	"gqlstream/ingest/event"
)

// plainForm reports whether an id has only small letters, digits and signs, so that its folded form
// is itself.
func plainForm(name string) bool {
	if name[0] == '0' || name[0] == '"' || name[0] == '\'' {
		return false
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= 0x80 || c >= 'A' && c <= 'Z' || c == '@' && i == 0 {
			return false
		}
	}
	return true
}

// folded returns a form of an id that programs and people write in several ways: small letters,
// without quotes, without @ or zeros before it, with the same code points for the same letters, and
// without characters that are not seen.
func folded(name string) string {
	for _, quote := range []string{`"`, "'"} {
		if inside, is := strings.CutPrefix(name, quote); is {
			name = strings.TrimSuffix(inside, quote)
		}
	}
	name = strings.ToLower(strings.TrimPrefix(norm.NFKC.String(name), "@"))
	if !isASCII(name) {
		name = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Cf, r) { // characters that are not seen, such as joiners
				return -1
			}
			return r
		}, name)
	}
	if rest := strings.TrimLeft(name, "0"); rest != name && isWhole(cmp.Or(rest, "0")) {
		return cmp.Or(rest, "0")
	}
	return name
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// fold records the properties of an id by its folded form.
func (s *survey) fold(id event.ID, key, what uint64) {
	if id.Name == "" || plainForm(id.Name) {
		return
	}
	form := keyOf(event.ParseID(folded(id.Name)))
	if !s.folds.keeps(form) {
		return
	}
	x, known := s.folds.of[form]
	if known && x.last != key {
		x.other = 1 // ids that differ only in their form
	}
	x.last, x.again = key, x.again|uint32(what)
	s.folds.of[form] = x
	if len(s.folds.of) > sampleMax {
		s.folds.shrink()
	}
}

// variantsShare is the least share of vertices with ids of several forms that leads to a warning:
// one in so many.
const variantsShare = 50

// variants returns how many vertices have ids that differ only in their form, and how many vertices
// with one property would have another one as well if such ids were the same.
func (s *survey) variants(has, also uint64) (several, meet int) {
	for form, x := range s.folds.of {
		plain, known := s.vertices.of[form]
		if x.other > 0 || known && x.last != form {
			several++
		}
		if what := uint64(x.again) | plain.last; what&has != 0 && what&also != 0 {
			meet++
		}
	}
	return several * s.folds.scale(), meet * s.folds.scale()
}

// variantWarning warns if a part of the vertices have ids that differ only in their form.
func (s *survey) variantWarning() []string {
	vertices, _ := s.meets(^uint64(0), 0)
	several, _ := s.variants(0, 0)
	if several == 0 || several*variantsShare < vertices {
		return nil
	}
	return []string{fmt.Sprintf("%s vertices have ids that differ only in capitals, in quotes, in "+
		"@ or zeros before them or in the code points of their letters: different ids are "+
		"different vertices",
		grouped(several))}
}

// dateForm matches ids that a spreadsheet makes of text such as MAR1 or 3-1.
var dateForm = regexp.MustCompile(`^(\d{1,2}[- ](Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)` +
	`([- ]\d{2,4})?|(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[- ]\d{1,4}|` +
	`\d{4}-\d\d-\d\d( 00:00:00)?|\d{1,2}[/.]\d{1,2}[/.]\d{2,4})$`)

// isDate reports whether a name looks like a date.
func isDate(name string) bool {
	if len(name) < len("1-Mar") || len(name) > len("2024-03-01 00:00:00") || name[0] > 'S' {
		return false
	}
	return strings.ContainsAny(name, "-/.") && dateForm.MatchString(name)
}

// dates counts ids that look like dates.
type dates struct {
	count int
	first string
}

func (d *dates) see(name string) {
	if isDate(name) {
		if d.count++; d.first == "" {
			d.first = strings.Clone(name)
		}
	}
}

// hashOf returns a hash of an attribute's value.
func hashOf(v event.Value) uint64 {
	return mix(xxhash.Sum64String(v.Text), mix(uint64(v.Kind), floatBits(v.Number)))
}
