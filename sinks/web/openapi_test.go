package web

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

// openAPI is docs/openapi.yaml as plain maps.
type openAPI map[string]any

func readOpenAPI(t testing.TB) openAPI {
	t.Helper()
	data, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(tree) // numbers become float64, keys strings
	if err != nil {
		t.Fatal(err)
	}
	var out openAPI
	if err := json.Unmarshal(plain, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// at follows keys into the tree, and references on the way.
func (o openAPI) at(node any, keys ...string) map[string]any {
	m, _ := node.(map[string]any)
	for {
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		m = o.at(map[string]any(o), strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	if len(keys) == 0 {
		return m
	}
	return o.at(m[keys[0]], keys[1:]...)
}

// A text with a comma that nobody quoted becomes a key, and the file one that generators of
// clients refuse; they want a name for every operation as well.
func TestOpenAPIIsWellFormed(t *testing.T) {
	operations := map[string]bool{}
	var walk func(where string, node any)
	walk = func(where string, node any) {
		if list, ok := node.([]any); ok {
			for i, x := range list {
				walk(fmt.Sprintf("%s/%d", where, i), x)
			}
		}
		m, _ := node.(map[string]any)
		for key, x := range m {
			if strings.ContainsAny(key, " .,") && !strings.HasPrefix(key, "/") {
				t.Errorf("%s has the key %q", where, key)
			}
			if kind, ok := m["type"]; ok && key == "type" &&
				!strings.HasSuffix(where, "/properties") &&
				where != "/info" {
				if _, text := kind.(string); !text {
					t.Errorf("%s has the type %v, which is none of OpenAPI 3.0", where, kind)
				}
			}
			if key == "get" {
				name, _ := x.(map[string]any)["operationId"].(string)
				if name == "" || operations[name] {
					t.Errorf("%s has the operationId %q", where, name)
				}
				operations[name] = true
			}
			walk(where+"/"+key, x)
		}
	}
	walk("", map[string]any(readOpenAPI(t)))
	if len(operations) < 11 {
		t.Errorf("operations %v", operations)
	}
}

// The file and the handlers must know the same addresses and parameters.
func TestOpenAPIListsTheRoutes(t *testing.T) {
	o := readOpenAPI(t)
	documented := map[string][]string{}
	for path, item := range o.at(map[string]any(o), "paths") {
		if operations := o.at(item); len(operations) != 1 || operations[method(path)] == nil {
			t.Errorf("%s: want %s and nothing else", path, method(path))
			continue
		}
		names := []string{}
		for _, p := range asList(o.at(item, method(path))["parameters"]) {
			if parameter := o.at(p); parameter["in"] == "query" {
				names = append(names, parameter["name"].(string))
			} else if !strings.Contains(path, "{"+parameter["name"].(string)+"}") {
				t.Errorf("%s: no %v in the path", path, parameter["name"])
			}
		}
		sort.Strings(names)
		documented[path] = names
	}
	for _, rt := range routes() {
		want := slices.Sorted(slices.Values(rt.params))
		got, ok := documented[rt.pattern]
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%s: documented %v (%v), served %v", rt.pattern, got, ok, want)
		}
		open := o.at(map[string]any(o), "paths", rt.pattern, method(rt.pattern))["security"] != nil
		if open != rt.open {
			t.Errorf("%s: documented without a token %v, served so %v", rt.pattern, open, rt.open)
		}
		delete(documented, rt.pattern)
	}
	for path := range documented {
		t.Errorf("%s is documented and not served", path)
	}
}

// method is the one that a path takes.
func method(path string) string {
	if path == "/api/v1/labels" || path == "/api/v1/alerts/silence" {
		return "post"
	}
	return "get"
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// Limits and choices in the file must be those of the handlers: just within is
// served, just beyond is refused.
func TestOpenAPIHoldsTheLimits(t *testing.T) {
	o := readOpenAPI(t)
	s := serve(t, func(c *Config) { c.Quarantine = someEntries })
	write(t, s, estimate("x", "auto", 1, 0.5))
	for _, path := range []string{
		"/api/v1/communities", "/api/v1/communities/{name}/estimates",
		"/api/v1/communities/{name}/history", "/api/v1/communities/{name}", "/api/v1/status",
		"/api/v1/alerts", "/api/v1/quarantine",
	} {
		for _, p := range asList(o.at(map[string]any(o), "paths", path, "get")["parameters"]) {
			parameter := o.at(p)
			name, schema := parameter["name"].(string), o.at(parameter["schema"])
			for _, one := range asList(schema["oneOf"]) { // a number, or a word
				if choice := o.at(one); choice["enum"] == nil {
					schema = choice
				} else if code, _, body := get(t, s, strings.Replace(path, "{name}", "x", 1)+"?"+
					name+"="+asList(choice["enum"])[0].(string)); code != 200 {
					t.Errorf("%s?%s=%v: code %d: %s", path, name, choice["enum"], code, body)
				}
			}
			address := strings.Replace(path, "{name}", "x", 1) + "?" + name + "="
			try := func(value string, want int) {
				t.Helper()
				if code, _, body := get(t, s, address+value); code != want {
					t.Errorf("%s%s: code %d, want %d: %s", address, value, code, want, body)
				}
			}
			for _, choice := range asList(schema["enum"]) {
				try(choice.(string), 200)
			}
			if schema["enum"] != nil {
				try("else", 400)
			}
			for key, step := range map[string]int{"minimum": -1, "maximum": 1} {
				if limit, ok := schema[key].(float64); ok {
					within := 200
					if name == "class" && key == "maximum" {
						within = 404 // there are fewer classes
					}
					try(fmt.Sprint(int(limit)), within)
					try(fmt.Sprint(int(limit)+step), 400)
				}
			}
			if most, ok := schema["maxLength"].(float64); ok {
				try(strings.Repeat("x", int(most)), 200)
				try(strings.Repeat("x", int(most)+1), 400)
			}
		}
	}
	properties := o.at(map[string]any(o), "paths", "/api/v1/communities", "get")
	for _, p := range asList(properties["parameters"]) {
		if parameter := o.at(p); parameter["name"] == "sort" &&
			len(asList(o.at(parameter["schema"])["enum"])) != len(sortKeys) {
			t.Errorf(
				"sort has %d choices, the file %v",
				len(sortKeys),
				o.at(parameter["schema"])["enum"],
			)
		}
	}
}

// Every answer must fit its schema, with all optional parts and without any.
func TestAnswersFitTheirSchemas(t *testing.T) {
	o := readOpenAPI(t)
	empty := serve(t, nil)
	full := serve(t, func(c *Config) { c.Quarantine, c.Public = someEntries, []string{"x"} })
	for i := range uint64(40) {
		write(t, full, estimate("x", "auto", i+1, 0.5), estimate("x", "pcc", i+1, 0.4))
	}
	bare := quant.Estimate{Community: "bare", Method: "auto", Suppressed: true}
	write(t, full, bare)
	full.SetAlerts(sampleAlerts())
	full.AddTransitions(
		[]alerts.Transition{transition(1, "x", alerts.Firing), transition(2, "x", alerts.Resolved)},
	)
	full.Status(runningStatus(1))
	for _, c := range []struct {
		s                  *Server
		path, spec, status string
	}{
		{empty, "/api/v1/info", "/api/v1/info", "200"},
		{full, "/api/v1/classifier", "/api/v1/classifier", "200"},
		{full, "/embed/x/data", "/embed/{name}/data", "200"},
		{full, "/embed/bare/data", "/embed/{name}/data", "404"},
		{empty, "/api/v1/status", "/api/v1/status", "200"},
		{empty, "/api/v1/communities", "/api/v1/communities", "200"},
		{empty, "/api/v1/communities/x", "/api/v1/communities/{name}", "404"},
		{full, "/api/v1/status", "/api/v1/status", "200"},
		{empty, "/api/v1/alerts", "/api/v1/alerts", "200"},
		{full, "/api/v1/alerts?community=x", "/api/v1/alerts", "200"},
		{full, "/api/v1/quarantine", "/api/v1/quarantine", "200"},
		{empty, "/api/v1/estimates", "/api/v1/estimates", "200"},
		{full, "/api/v1/estimates?community=x&after=39", "/api/v1/estimates", "200"},
		{full, "/api/v1/communities?trend=10", "/api/v1/communities", "200"},
		{full, "/api/v1/communities?limit=x", "/api/v1/communities", "default"},
		{full, "/api/v1/communities/x", "/api/v1/communities/{name}", "200"},
		{full, "/api/v1/communities/bare", "/api/v1/communities/{name}", "200"},
		{full, "/api/v1/communities/x/estimates", "/api/v1/communities/{name}/estimates", "200"},
		{full, "/api/v1/communities/bare/estimates", "/api/v1/communities/{name}/estimates", "200"},
	} {
		code, _, body := get(t, c.s, c.path)
		if c.status != "default" && fmt.Sprint(code) != c.status {
			t.Errorf("%s: code %d, want %s", c.path, code, c.status)
		}
		content := o.at(map[string]any(o), "paths", c.spec, "get", "responses", c.status, "content")
		o.fits(t, c.path, o.at(content["application/json"], "schema"), body)
	}
}

// fits fails the test unless the JSON fits the schema.
func (o openAPI) fits(t testing.TB, where string, schema map[string]any, body []byte) {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Errorf("%s: %v: %s", where, err, body)
		return
	}
	if len(schema) == 0 {
		t.Errorf("%s: no schema", where)
	}
	for _, problem := range o.check(where, schema, value) {
		t.Error(problem)
	}
}

// check is as much of JSON schema as the file uses.
func (o openAPI) check(where string, schema map[string]any, value any) []string {
	wrong := func(format string, args ...any) []string {
		return []string{where + ": " + fmt.Sprintf(format, args...)}
	}
	if value == nil {
		if schema["nullable"] == true {
			return nil
		}
		return wrong("null")
	}
	switch want := schema["type"]; v := value.(type) {
	case map[string]any:
		if want != "object" {
			return wrong("an object, want %v", want)
		}
		return o.checkObject(where, schema, v)
	case []any:
		if want != "array" {
			return wrong("an array, want %v", want)
		}
		var out []string
		for i, item := range v {
			out = append(out, o.check(fmt.Sprintf("%s[%d]", where, i), o.at(schema["items"]),
				item)...)
		}
		return out
	case float64:
		if want != "number" && (want != "integer" || v != math.Trunc(v)) {
			return wrong("%v, want %v", v, want)
		}
		if least, ok := schema["minimum"].(float64); ok && v < least {
			return wrong("%v is less than %v", v, least)
		}
	case string:
		if want != "string" {
			return wrong("a string, want %v", want)
		}
		if list := asList(schema["enum"]); list != nil && !slices.Contains(list, any(v)) {
			return wrong("%q is none of %v", v, list)
		}
		if _, err := time.Parse(time.RFC3339Nano, v); schema["format"] == "date-time" &&
			err != nil {
			return wrong("%v", err)
		}
	case bool:
		if want != "boolean" {
			return wrong("a boolean, want %v", want)
		}
	}
	return nil
}

func (o openAPI) checkObject(where string, schema, value map[string]any) []string {
	var out []string
	for _, name := range asList(schema["required"]) {
		if _, ok := value[name.(string)]; !ok {
			out = append(out, fmt.Sprintf("%s: no %v", where, name))
		}
	}
	properties := o.at(schema["properties"])
	for name, v := range value {
		if property, ok := properties[name]; ok {
			out = append(out, o.check(where+"."+name, o.at(property), v)...)
		} else if other := o.at(schema["additionalProperties"]); len(other) > 0 {
			out = append(out, o.check(where+"."+name, other, v)...)
		} else {
			out = append(out, fmt.Sprintf("%s: %s is not in the schema", where, name))
		}
	}
	return out
}

// The checker itself must find mistakes, or the tests above prove nothing.
func TestSchemaCheckerFindsMistakes(t *testing.T) {
	o := readOpenAPI(t)
	schema := o.at(map[string]any(o), "components", "schemas", "Estimate")
	for _, bad := range []string{
		`{}`, `[]`, `null`, `1`, `{"community":1,"position":1,"method":"x","lambda":0,` +
			`"members":0,"labelled":0,"coverage":0,"prevalence":[],"n_eff":[],"certificate":0,` +
			`"flags":[]}`,
		`{"community":"a","position":1.5,"method":"x","lambda":0,"members":0,"labelled":0,` +
			`"coverage":0,"prevalence":[],"n_eff":[],"certificate":0,"flags":[]}`,
		`{"community":"a","position":1,"method":"x","lambda":0,"members":0,"labelled":0,` +
			`"coverage":0,"prevalence":["a"],"n_eff":[],"certificate":0,"flags":[]}`,
		`{"community":"a","position":1,"method":"x","lambda":0,"members":0,"labelled":0,` +
			`"coverage":0,"prevalence":null,"n_eff":[],"certificate":0,"flags":[]}`,
		`{"community":"a","position":1,"method":"x","lambda":0,"members":0,"labelled":0,` +
			`"coverage":0,"prevalence":[],"n_eff":[],"certificate":0,"flags":[],"new":1}`,
	} {
		var value any
		if err := json.Unmarshal([]byte(bad), &value); err != nil {
			t.Fatal(err)
		}
		if len(o.check("bad", schema, value)) == 0 {
			t.Errorf("passed: %s", bad)
		}
	}
}
