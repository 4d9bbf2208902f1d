package alerts

import (
	"cmp"
	"strconv"

	"gqlstream/quant/difference"
)

// Display holds names for people, by the name in the log. Texts of alerts and the page have them.
// Everything else keeps the names of the log: records, streams, the fields of alerts and addresses.
type Display struct {
	Communities map[string]string `yaml:"communities" json:"communities"`
	Classes     map[string]string `yaml:"classes" json:"classes"`
}

// Name returns the name of a community, or of a difference, for people.
func (d Display) Name(community string) string {
	if a, b, ok := difference.Sides(community); ok {
		return d.Name(a) + " less " + d.Name(b)
	}
	return cmp.Or(d.Communities[community], community)
}

// Class returns the name of a class for people. A bare number becomes "class 1", as on the page.
func (d Display) Class(name string) string {
	if _, err := strconv.Atoi(name); err == nil {
		return cmp.Or(d.Classes[name], "class "+name)
	}
	return cmp.Or(d.Classes[name], name)
}
