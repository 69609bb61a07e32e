package table

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// FuzzBothReadingsHaveTheSameKeys checks that both TOML parsers produce the same tree: the one that decodes the values
// and the one that finds the positions.
func FuzzBothReadingsHaveTheSameKeys(f *testing.F) {
	files, err := filepath.Glob("../../testdata/*.golden")
	if err != nil || len(files) == 0 {
		f.Fatal("no texts", err)
	}
	for _, file := range append(files, "../../../models.toml") {
		text, err := os.ReadFile(file)
		fatal.If(f, err)
		for _, block := range strings.Split(string(text), "-- models.toml\n") {
			one, _, _ := strings.Cut(block, "-- want\n")
			f.Add(one)
		}
	}
	f.Add("a.b.c = [[{ 'x y' = 1, z.w = [] }], 2]\n[[t.\"é\"]]\n[t.\"é\".u]\nv = 1979-05-27\n[[t.\"é\"]]\nw = {}\n")
	f.Add("m.0=0\nm=\"\"")
	f.Add("a = 1\na.b = 2\n")
	f.Add("[a]\nb = { c = 1 }\n[a.b.d]\n")
	for _, known := range []string{ // texts on which the two parsers differ or may differ: the grammar of TOML 1.1, implied tables, texts of keys
		"a = {\n  b = 1, # c\n  c = 2,\n}\n", "a = [1, 2,\n # c\n]\n", "a = \"\\e\\x41\"\n", "\"\\x41\" = 1\nA = 2\n", "a = 10:30\nb = 1979-05-27 07:32\n",
		"\"\\u0061\" = 1\n'b.c' = 2\n\"\" = 3\n", "\"a\" = 1\na = 2\n", "a = 0xFF\nb = 0o7\nc = 0b1\nd = +inf\ne = nan\nf = 1_000\ng = -0.0\n", "a = 1__0\n", "a = 9223372036854775808\n",
		"a = \"\"\"\r\nx\\\r\n  y\"\"\"\"\"\r\nb = '''\n'x'''\n", "[a.b]\nc = 1\n[a]\nd = 2\n", "[a]\nb.c = 1\n[a.b]\n", "[a.b]\n[a]\nb.c = 1\n", "a.b = 1\n[a]\n",
		"[[a]]\n[a.b]\n[[a]]\n[a.b]\nc = 1\n", "a = []\n[[a]]\n", "a = {}\n[a.b]\n", "[[a.b]]\n[[a]]\n", "[a]\n[[a]]\n", "[a]\n[a.b]\n[a]\n[a.c]\n[d]\n", "a = [{ b.c = 1, b.d = 2 }, { b = [] }, [[{}]]]\n",
		"a = 1 # \x01\n", "a = 1\rb = 2\n", "\ufeffa = 1\n", "a = 1\n\ufeffb = 2\n", "ü = 1\n", "a = 1979-02-30\n", "a = 1 b = 2\n", "[ a . 'b' ]\nc . d = 1\n",
	} {
		f.Add(known)
	}
	f.Add("a = { b.c = 1, b.c = 2, d = 3 }\n[a]\nx = 1\n[a.y]\nz = 1\n[b]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		root, found := Parse(NewSource("x.toml", text))
		for _, d := range found {
			if at := d.At.Place(); at.Line < 1 || at.Column < 1 || d.Problem == "" {
				t.Errorf("no place or no problem: %+v", d)
			}
		}
		if root == nil {
			if len(found) == 0 {
				t.Error("neither a tree nor an error")
			}
			return
		}
		var values map[string]any
		if _, err := toml.Decode(strings.TrimPrefix(text, "\ufeff"), &values); err != nil {
			if len(found) == 0 {
				t.Errorf("only one of the readers refuses this: %v", err)
			}
			return // the tree contains the first values of duplicates
		}
		if len(found) > 0 {
			return // duplicates that BurntSushi/toml accepts: m.x = 0 and m = ""
		}
		same(t, "", root, values)
		valid, found := ParseValid(NewSource("x.toml", text))
		if len(found) > 0 {
			t.Errorf("ParseValid: %v", found)
		}
		identical(t, "", valid, root)
	})
}

// identical compares two trees: their forms, positions and values, also the types of the values.
func identical(t *testing.T, at string, n, other *Node) {
	one, two := n.At, other.At
	one.Source, two.Source = nil, nil
	if n.form != other.form || n.header != other.header || one != two || !slices.Equal(n.Keys, other.Keys) || len(n.Items) != len(other.Items) {
		t.Fatalf("%s: got %+v, want %+v", at, n, other)
	}
	expect.Equal(t, fmt.Sprintf("%T %v", n.Leaf, n.Leaf), fmt.Sprintf("%T %v", other.Leaf, other.Leaf), at, n.Leaf, n.Leaf, other.Leaf, other.Leaf)
	for i, k := range n.Keys {
		identical(t, at+"."+k, n.table[i], other.table[i])
	}
	for i := range n.Items {
		identical(t, at+"["+strconv.Itoa(i)+"]", n.Items[i], other.Items[i])
	}
}

// The shipped models and the forms of TOML's values are the same for both ways to read a text.
func TestAValidTextIsReadAlikeBothWays(t *testing.T) {
	shipped, err := os.ReadFile("../../../models.toml")
	fatal.If(t, err)
	values := "a = [0x1F, 0o17, 0b101, +1_000, -0, 9223372036854775807, 1e3, -1.5_0E-2, inf, -inf, +nan, true, false]\n" +
		"b = \"\\u00e9\\t\\\"\"\nc = '\\n'\nd = \"\"\"\nx \\\n  y\"\"\"\ne = '''\n z'''\nf = 1979-05-27T07:32:00Z\n[t]\n\"x y\".z = { q = [{ r = 1 }, {}] }\n[[u]]\n[[u]]\nv = []\n"
	for _, text := range []string{string(shipped), values, strings.Replace(values, "f = 1979-05-27T07:32:00Z", "", 1)} {
		want, found := Parse(NewSource("x.toml", text))
		if len(found) > 0 {
			t.Fatal(found)
		}
		got, found := ParseValid(NewSource("x.toml", text))
		if len(found) > 0 {
			t.Fatal(found)
		}
		identical(t, "", got, want)
	}
	if p := readPlaces(NewSource("models.toml", string(shipped)), true); p.unread || p.syntax != nil || len(p.twice) > 0 {
		t.Error("the shipped models are read twice")
	}
}

// same compares a tree with decoded values, and checks that each value has a position.
func same(t *testing.T, at string, n *Node, value any) {
	if n.parent != nil && (n.At.Source == nil || n.At.Start > n.At.End || n.At.End > len(n.At.Source.Text)) {
		t.Errorf("%s: no place: %+v", at, n.At)
	}
	list, isList := value.([]any)
	if tables, ok := value.([]map[string]any); ok {
		isList = true
		for _, m := range tables {
			list = append(list, m)
		}
	}
	switch m, isTable := value.(map[string]any); {
	case isTable:
		if !n.IsTable() || len(n.Keys) != len(m) {
			t.Errorf("%s: the keys %q have places, want those of %v", at, n.Keys, m)
			return
		}
		for k, x := range m {
			if c := n.Child(k); c == nil {
				t.Errorf("%s.%s has no place", at, k)
			} else {
				same(t, at+"."+k, c, x)
			}
		}
	case isList:
		if !n.IsArray() || len(n.Items) != len(list) {
			t.Errorf("%s: %d elements have places, want %d", at, len(n.Items), len(list))
			return
		}
		for i, x := range list {
			same(t, fmt.Sprintf("%s[%d]", at, i), n.Items[i], x)
		}
	default:
		expect.Equal(t, n.form, scalar, at)
		expect.Equal(t, fmt.Sprint(n.Leaf), fmt.Sprint(value), at)
	}
}

func TestKeysOfTooManyNamesAreRefusedWhereTheyBecomeTooMany(t *testing.T) {
	_, found := Parse(NewSource("x.toml", "ok = 1\n"+strings.Repeat("a.", 100000)+"a = 1\n"))
	if len(found) != 1 || !strings.HasPrefix(found[0].String(), "x.toml:2:201: a key of more than 100 names\n") {
		t.Errorf("got %.200v", found)
	}
}

func TestArgumentsAreReadAsTOMLElseAsText(t *testing.T) {
	for argument, want := range map[string]any{
		"a.b=3": int64(3), "a.b=x": "x", "a.b='3'": "3", "a.b=": "", "a.b=[1, 2]": []any{int64(1), int64(2)}, "a.b=x\n[c]": "x\n[c]",
	} {
		c, err := ParseChange(argument)
		if err != nil {
			t.Errorf("%q: %v", argument, err)
			continue
		}
		n := c.Root.Child("a").Child("b")
		if got := fmt.Sprint(n.Plain()); got != fmt.Sprint(want) || strings.Join(c.Path(), ".") != "a.b" {
			t.Errorf("%q: got %q at %q, want %v", argument, got, c.Path(), want)
		}
		expect.Equal(t, n.At.Source, c.Source, argument, "the value is at", n.At.Start, n.At.End)
		expect.Equal(t, c.Source.Text[n.At.Start:n.At.End], strings.TrimPrefix(argument, "a.b="), argument, "the value is at", n.At.Start, n.At.End)
	}
	for _, bad := range []string{"a", "=1", "a..b=1", "a[0]=1", "a=\xff"} {
		expect.AnyError(t, expect.Err(ParseChange(bad)), bad, "is taken")
	}
}

func TestValuesNestedTooDeepAreRefused(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 5000) + strings.Repeat("]", 5000), strings.Repeat("{a=", 5000) + "1" + strings.Repeat("}", 5000)} {
		_, found := Parse(NewSource("x.toml", "x = "+text+"\n"))
		if len(found) != 1 || !strings.Contains(found[0].String(), "more than 200 nested arrays or inline tables") {
			t.Errorf("got %.200v", found)
		}
	}
}

// The place and the sign of a syntax error are named in plain words.
func TestSyntaxErrorsNameTheSign(t *testing.T) {
	for text, want := range map[string]string{
		"a = [,\n":    `x.toml:1:6: got ",", want a value`,
		"a = 3 4\n":   `x.toml:1:7: got "4", want a newline`,
		"[,]\n":       `x.toml:1:2: invalid character at start of key: ","`,
		"a = [1 é]\n": `x.toml:1:8: expected ',' or ']' after array value`,
	} {
		_, wrong := Parse(NewSource("x.toml", text))
		if len(wrong) == 0 || !strings.HasPrefix(wrong[0].String(), want) {
			t.Errorf("%q: got %v, want %s", text, wrong, want)
		}
	}
}
