package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/layers"
)

const oneLayer = "encoder = [{ kind = \"dense\", units = 3 }]\n"

// Twice as much text takes about twice the work, not four times.
func TestTheWorkGrowsWithTheText(t *testing.T) {
	for name, text := range map[string]func(n int) string{
		"models":          models(func(i, _ int) string { return oneLayer }),
		"chain":           models(func(i, n int) string { return chained(i-1, i == 0) }),
		"backwards chain": models(func(i, n int) string { return chained(i+1, i == n-1) }),
		"pairs":           models(func(i, _ int) string { return chained(i^1, false) }),
		"broken":          models(func(i, _ int) string { return strings.Replace(oneLayer, "units", "unitz", 1) }),
		"chain of heads":  heads(func(i, n int) string { return name(i + 1) }),
		"chain of heads that begins nowhere": heads(func(i, n int) string {
			if i == n-1 {
				return "nowhere"
			}
			return name(i + 1)
		}),
		"cycle of heads": heads(func(i, n int) string { return name((i + 1) % n) }),
		"values of a sweep": func(n int) string {
			return "[model.m]\n" + oneLayer + "[sweep.s]\nmodel = \"m\"\nseeds = [" + repeated(n, func(i int) string { return fmt.Sprint(i, ",") }) + "]\n"
		},
		"models of a sweep": func(n int) string {
			return models(func(i, n int) string { return chained(i-1, i == 0) })(n) +
				"[sweep.s]\nmodel = [" + repeated(n, func(i int) string { return fmt.Sprintf("\"m%d\",", i) }) + "]\n"
		},
		"constraints of layers": func(n int) string {
			return "[model.m]\nencoder = [" + strings.Repeat("{ kind = \"dense\", units = 3 }, ", n) + "]\nconstraint = [" + strings.Repeat("{ kind = \"nonneg\" }, ", n) + "]\n"
		},
		"errors in one line": func(n int) string {
			return "[model.m]\nencoder = [" + strings.Repeat("{ kind = \"dense\", unitz = 3 }, ", n) + "]\n"
		},
	} {
		work := func(n int) float64 {
			all := []byte(text(n))
			printed := 0
			allocations := testing.AllocsPerRun(1, func() {
				f, err := Load("models.toml", all)
				fatal.If(t, err)
				if err = f.Check(); err != nil {
					printed = len(err.Error())
				}
			})
			return allocations + float64(printed)/100
		}
		if few, many := work(250), work(500); many > 2.5*few {
			t.Errorf("%s: %g allocations for 250, %g for 500", name, few, many)
		}
	}
}

func repeated(n int, one func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(one(i))
	}
	return b.String()
}

func models(one func(i, n int) string) func(n int) string {
	return func(n int) string {
		return repeated(n, func(i int) string { return fmt.Sprintf("[model.m%d]\n%s", i, one(i, n)) })
	}
}

// name returns the i-th of a series of names whose alphabetical order is their numerical order.
func name(i int) string { return fmt.Sprintf("h%06d", i) }

// heads declares one model with n heads. Head i reads the value from(i, n). The name of head n, which does not exist,
// stands for the code.
func heads(from func(i, n int) string) func(n int) string {
	return func(n int) string {
		return "[model.m]\n" + oneLayer + repeated(n, func(i int) string {
			reads := from(i, n)
			if reads == name(n) {
				reads = "code"
			}
			return fmt.Sprintf("[model.m.head.%s]\nfrom = %q\nlayers = [{ kind = \"dense\", units = 3 }]\n", name(i), reads)
		})
	}
}

func chained(parent int, last bool) string {
	if last {
		return oneLayer
	}
	return fmt.Sprintf("extends = \"m%d\"\n", parent)
}

// Heads are placed in rounds, each in the first round in which its inputs are placed. Within a round they are in the
// order of their names.
func TestHeadsArePlacedInRounds(t *testing.T) {
	from := map[string]string{"a": "d", "b": "code", "c": "a", "d": "b", "e": "output"}
	text := "[model.m]\n" + oneLayer
	for name, reads := range from {
		text += fmt.Sprintf("[model.m.head.%s]\nfrom = %q\nlayers = [{ kind = \"dense\", units = 3 }]\n", name, reads)
	}
	m, _ := load(t, text).build("m", nil)
	got := lists.Map(m.walk([]int{32, 32}).layout.Heads, func(h PlacedHead) string { return h.Name })
	expect.Slice(t, got, []string{"b", "d", "e", "a", "c"})
}

// A very long name is not compared letter by letter. Messages contain it at most once, shortened.
func TestNamesOfAnyLengthAreShortened(t *testing.T) {
	long := strings.Repeat("a", 1_000_000)
	for _, text := range []string{
		"[model." + long + "]\n",
		"[model." + long + "]\nencoder = [{ kind = \"dense\", unitz = 3 }]\n",
		"[model." + long + "]\nextends = \"" + strings.Repeat("ab", len(long)/2) + "\"\n[model.m]\n" + oneLayer,
		"[model.m]\n" + long + " = 1\n" + oneLayer,
	} {
		err := load(t, text).Check()
		if err == nil || len(err.Error()) > 12_000 {
			t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
		}
	}
	_, err := ParseSet(long + ".=1")
	if err == nil || len(err.Error()) > 12_000 {
		t.Errorf("an error of %d bytes", len(fmt.Sprint(err)))
	}
}

// A layer type that is registered under two names keeps the name in the declaration. This also holds in a block, whose
// layers are copied for a layout.
func TestALayerOfABlockHasTheNameThatWasWritten(t *testing.T) {
	layers.Registry.Register("zz_twice", "another name of leaky_relu", func() layers.Layer { return &layers.LeakyRelu{Slope: 0.5} })
	m := model(t, load(t, "[model.m]\nencoder = [{ kind = \"residual\", layers = [{ kind = \"relu\" }, { kind = \"zz_twice\" }] }, { kind = \"dense\", units = 3 }]\n"), "m")
	layout, err := m.Layout([]int{32, 32})
	fatal.If(t, err)
	if got := slices.Collect(layout.Layers())[2]; got.Kind != "zz_twice" || got.Path != "encoder.0.1" {
		t.Errorf("got %+v", got)
	}
	expect.Contains(t, string(m.Text()), "kind = \"zz_twice\"\nslope = 0.5", "filled")
}

// Check keeps the models that it has built up to a number of layers. A model beyond that number is built again, with the same text.
func TestModelsBeyondTheKeptLayersAreBuiltAgain(t *testing.T) {
	text := models(func(i, _ int) string { return oneLayer })(3)
	f, full := load(t, text), load(t, text)
	full.invalidate()
	full.kept = mostKept
	for _, file := range []*File{f, full} {
		fatal.If(t, file.Check())
	}
	if len(f.built) != 3 || f.kept != 6 || len(full.built) != 0 {
		t.Errorf("kept %d models of %d layers and %d beyond the limit, want 3, 6 and 0", len(f.built), f.kept, len(full.built))
	}
	for _, name := range f.Names() {
		if a, b := model(t, f, name), model(t, full, name); string(a.Text()) != string(b.Text()) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, b.Text(), a.Text())
		}
	}
	expect.Equal(t, f.kept, 0, "layers are kept of models that were returned")
}
