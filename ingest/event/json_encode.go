package event

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendJSON appends the event as one JSON object, without a line end, and
// returns the extended slice. Fields at their defaults are left out, times are
// RFC 3339 in UTC. Decoding the object gives the event back.
func (e *Edge) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	if e.Remove {
		dst = append(dst, `"op":"remove",`...)
	}
	dst = appendID(append(dst, `"src":`...), e.Src)
	dst = appendID(append(dst, `,"dst":`...), e.Dst)
	if !e.Remove && e.Weight != 1 {
		dst = appendFloat(append(dst, `,"weight":`...), e.Weight)
	}
	if !e.Remove {
		dst = appendTTL(dst, e.TTL)
	}
	return appendEnd(dst, e.Time)
}

// AppendJSON appends the event as Edge.AppendJSON does.
func (e *Label) AppendJSON(dst []byte) []byte {
	dst = appendID(append(dst, `{"vertex":`...), e.Vertex)
	dst = append(dst, `,"class":`...)
	if e.Class == NoClass {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, int64(e.Class), 10)
	}
	if e.Role != Calibrate {
		dst = appendString(append(dst, `,"role":`...), e.Role.String())
	}
	if e.Class != NoClass {
		dst = appendTTL(dst, e.TTL)
	}
	return appendEnd(dst, e.Time)
}

// AppendJSON appends the event as Edge.AppendJSON does.
func (e *Prediction) AppendJSON(dst []byte) []byte {
	dst = appendID(append(dst, `{"vertex":`...), e.Vertex)
	dst = append(dst, `,"probabilities":[`...)
	for k, u := range e.Units {
		if k > 0 {
			dst = append(dst, ',')
		}
		dst = appendFloat(dst, float64(u)/One)
	}
	dst = append(dst, ']')
	if e.Version != "" {
		dst = appendString(append(dst, `,"version":`...), e.Version)
	}
	return appendEnd(appendTTL(dst, e.TTL), e.Time)
}

// AppendJSON appends the event as Edge.AppendJSON does.
func (e *Member) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	if e.Multiplicity == 0 {
		dst = append(dst, `"op":"leave",`...)
	}
	dst = appendString(append(dst, `"community":`...), e.Community)
	dst = appendID(append(dst, `,"vertex":`...), e.Vertex)
	if e.Multiplicity > 1 {
		dst = strconv.AppendUint(append(dst, `,"multiplicity":`...), uint64(e.Multiplicity), 10)
	}
	return appendEnd(dst, e.Time)
}

// AppendJSON appends the event as Edge.AppendJSON does.
func (e *Vertex) AppendJSON(dst []byte) []byte {
	dst = appendID(append(dst, `{"vertex":`...), e.Vertex)
	if len(e.Attributes) > 0 {
		dst = append(dst, `,"attributes":{`...)
		n := len(dst)
		for _, a := range e.Attributes {
			dst = a.Value.appendJSON(appendKey(dst, n, a.Key))
		}
		dst = append(dst, '}')
	}
	if e.Erase {
		dst = append(dst, `,"erase":true`...)
	}
	return appendEnd(dst, e.Time)
}

// AppendJSON appends the event as Edge.AppendJSON does.
func (e *Control) AppendJSON(dst []byte) []byte {
	dst = appendString(append(dst, `{"op":`...), e.Op.String())
	if e.Op == Configure {
		dst = append(append(dst, `,"config":`...), e.Config...)
	}
	return appendEnd(dst, e.Time)
}

// appendJSON appends an attribute value.
func (v Value) appendJSON(dst []byte) []byte {
	switch v.Kind {
	case StringValue:
		return appendString(dst, v.Text)
	case NumberValue:
		return appendFloat(dst, v.Number)
	case BoolValue:
		return strconv.AppendBool(dst, v.Number != 0)
	}
	return append(dst, "null"...)
}

// appendID appends a vertex id. Integers that a JSON reader may round, as those
// of browsers do, are written as strings, which name the same vertex.
func appendID(dst []byte, id ID) []byte {
	if id.Name != "" {
		return appendString(dst, id.Name)
	}
	if id.Number < 1<<53 {
		return strconv.AppendUint(dst, id.Number, 10)
	}
	dst = strconv.AppendUint(append(dst, '"'), id.Number, 10)
	return append(dst, '"')
}

// appendTTL appends a time to live, when there is one.
func appendTTL(dst []byte, ttl time.Duration) []byte {
	if ttl == 0 {
		return dst
	}
	return append(append(append(dst, `,"ttl":"`...), ttl.String()...), '"')
}

// appendEnd appends the time, when there is one, and the end of the object.
func appendEnd(dst []byte, t Time) []byte {
	if t != 0 {
		dst = appendTime(append(dst, `,"time":`...), t)
	}
	return append(dst, '}')
}

// appendTime appends a time as a string.
func appendTime(dst []byte, t Time) []byte {
	dst = time.Unix(0, int64(t)).UTC().AppendFormat(append(dst, '"'), time.RFC3339Nano)
	return append(dst, '"')
}

// appendString appends a JSON string. What is not UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}
