package train

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/engine"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/train/evaluation"
	"tessera/metrics"
)

// tableOf writes .csv files of n samples of two factors with one cell in five missing: in the first file as empty cells, in
// the second as zeros with a mask.
func tableOf(t testing.TB, n int) (holed, masked string) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	var one, other strings.Builder
	one.WriteString("a,b,c,d,y\n")
	other.WriteString("a,b,c,d,y,ma,mb,mc,md,my\n")
	for range n {
		u, v := r.Float64(), r.Float64()
		cells, zeros, masks := []string{}, []string{}, []string{}
		for _, x := range []float64{u, v, u + v, u - v, 2 * u} {
			text := fmt.Sprintf("%.4f", x)
			if r.IntN(5) == 0 {
				cells, zeros, masks = append(cells, ""), append(zeros, "0.0"), append(masks, "0")
			} else {
				cells, zeros, masks = append(cells, text), append(zeros, text), append(masks, "1")
			}
		}
		fmt.Fprintln(&one, strings.Join(cells, ","))
		fmt.Fprintln(&other, strings.Join(append(zeros, masks...), ","))
	}
	dir := t.TempDir()
	holed, masked = filepath.Join(dir, "holed.csv"), filepath.Join(dir, "masked.csv")
	for path, text := range map[string]string{holed: one.String(), masked: other.String()} {
		fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return holed, masked
}

const incomplete = `
[model.incomplete]
dataset = DATASET
encoder = [{ kind = "dense", units = 4, activation = "tanh" }]
head.y.layers = [{ kind = "dense" }]
loss = [{ kind = "KIND" MASK }, { kind = "mse", on = "y", against = "target" YMASK }]
optimizer = { kind = "adam", learning_rate = 0.02 }
train = { epochs = 4, batch = 16, checkpoint_seconds = 0 }
`

// declared returns the model incomplete with the given kind of loss and data set. If masks is true, its terms read the masks m
// and my.
func declared(t testing.TB, kind, dataset string, masks bool, sets ...string) *config.Model {
	mask, target := "", ""
	if masks {
		mask, target = `, mask = "m"`, `, mask = "my"`
	}
	return model(t, strings.NewReplacer("DATASET", dataset, "KIND", kind, "YMASK", target, "MASK", mask).Replace(incomplete), sets...)
}

// Losses ignore missing entries: a training gives the same bytes as a training on zeros with explicit masks.
func TestMissingEntriesTrainAsWithAMask(t *testing.T) {
	holed, masked := tableOf(t, 60)
	for _, kind := range []string{"mse", "mae", "huber"} {
		got := trained(t, declared(t, kind, fmt.Sprintf(`{ name = "csv", file = %q, missing = "nan", columns = { target = "y" } }`, holed), false), Options{Backend: engine.Backend{}})
		want := trained(t, declared(t, kind, fmt.Sprintf(`{ name = "csv", file = %q, columns = { target = "y", my = "my", m = ["ma", "mb", "mc", "md"] } }`, masked), true), Options{Backend: engine.Backend{}})
		for i, p := range got.Trained.Parameters {
			if q := want.Trained.Parameters[i]; p.Path != q.Path || !slices.Equal(p.Data, q.Data) {
				t.Errorf("%s: %s: got %v, want %v", kind, p.Path, p.Data, q.Data)
			}
		}
		one, other := lines(t, got.Run), lines(t, want.Run)
		expect.Equal(t, one[3]["loss"], other[3]["loss"], kind, "loss")
	}
}

// Hidden values change no byte of a training: statistics, gradients and validation do not read them.
func TestHiddenValuesChangeNothing(t *testing.T) {
	const n, pixels = 50, 6
	r := rand.New(rand.NewPCG(1, 2))
	values := lists.Of(n*pixels, func(int) float32 { return r.Float32() })
	dir := t.TempDir()
	path := filepath.Join(dir, "x.npy")
	runOf := func() *Result {
		return trained(t, model(t, fmt.Sprintf(`
[model.hidden]
dataset = { name = "npy", images = %q, scale = "standardise", hide = 0.3 }
encoder = [{ kind = "dense", units = 4, activation = "tanh" }]
optimizer = { kind = "adam", learning_rate = 0.02 }
hook.revive = { every = 1, residuals = true }
train = { epochs = 4, batch = 16, checkpoint_seconds = 0 }
`, path)), Options{Backend: engine.Backend{}})
	}
	write := func() {
		fatal.If(t, data.WriteImages(path, []int{pixels}, values))
	}
	write()
	first := runOf()
	m := first.Trained.Spec
	set, err := Options{}.load(t.Context(), &m.Dataset)
	fatal.If(t, err)
	splits, err := set.Split(m.Dataset.Selection, m.Train.Seed)
	fatal.If(t, err)
	hidden := 0
	all := func(images *data.Images) map[string][]float32 { return images.All() }
	whole, _, err := set.Measured(data.Selection{Fit: "train", Hide: 0.3}, m.Train.Seed, data.TestSplit)
	fatal.If(t, err)
	for i, held := range all(whole)["held_out"] {
		if held == 1 {
			values[i] = 1000
			hidden++
		}
	}
	if hidden < 50 {
		t.Fatalf("%d of %d entries are hidden", hidden, len(values))
	}
	write()
	second := runOf()
	for i, p := range first.Trained.Parameters {
		expect.Slice(t, p.Data, second.Trained.Parameters[i].Data, p.Path)
	}
	a, b := lines(t, first.Run), lines(t, second.Run)
	expect.Equal(t, a[3]["val_mse"], b[3]["val_mse"], b[3], a[3])
	expect.Equal(t, a[3]["loss"], b[3]["loss"], b[3], a[3])
	measured, err := evaluation.Measure(t.Context(), m, graph.NewCoder(second.Trained.Model, engine.Backend{}), &evaluation.Sample{Images: splits.Fit}, nil)
	fatal.If(t, err)
	mse, _ := measured.Values.Number("mse")
	observed, ok := measured.Values.Number("mse_observed")
	held, there := measured.Values.Number("mse_held_out")
	if !ok || !there || mse != observed || held == observed {
		t.Errorf("mse %v, of observed entries %v, of hidden ones %v", mse, observed, held)
	}
	codes := graph.NewCoder(second.Trained.Model, engine.Backend{})
	x, columns := splits.Fit.Float32(), splits.Fit.All()
	y, err := metrics.Reconstruct(codes, x)
	fatal.If(t, err)
	for name, of := range map[string][]float32{"observed": x, "held_out": columns["complete"]} {
		sum, count, got := 0.0, 0.0, observed
		for i, counts := range columns[name] {
			sum += float64(counts) * math.Pow(float64(of[i])-float64(y[i]), 2)
			count += float64(counts)
		}
		if name == "held_out" {
			got = held
		}
		expect.Near(t, sum/count, got, 1e-9*got, name)
	}
	if v, _ := measured.Values.Find("cosine"); !strings.Contains(v.Missing, "missing or hidden") {
		t.Errorf("cosine compares placeholders: got %+v", v)
	}
}

// Parts that cannot ignore missing entries are rejected in the declaration.
func TestWhatCannotLeaveEntriesOutIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`[model.m]
dataset = { name = "bars", hide = 0.1 }
encoder = [{ kind = "dense", units = 4 }]
loss = [{ kind = "ssim" }]`: `terms that can: "bce", "huber", "mae", "mse"`,
		`[model.m]
dataset = { name = "bars", hide = 0.1 }
kind = "kmeans"`: `hide: kmeans fits all entries of images`,
		`[model.m]
dataset = { name = "npy", images = "x.npy", missing = "nan" }
kind = "semi_nmf"`: `missing: semi_nmf fits all entries of images`,
		`[model.m]
dataset = { name = "bars", hide = 0.1 }
kind = "nmf"
components = 5
batch = 10`: `batch: got 10, but samples with missing or hidden entries are fitted together: want 0`,
		`[model.m]
dataset = { name = "npy", images = "x.npy", missing = "none" }
encoder = [{ kind = "dense", units = 4 }]`: `got "none", want "nan"`,
	} {
		f, err := config.Load("m.toml", []byte(text))
		if err == nil {
			_, err = f.Model("m")
		}
		expect.Error(t, err, want)
		expect.Error(t, err, "m.toml:")
	}
}

// An auto-encoder learns nothing about a value or a sample that is missing completely: it is an error that names it.
func TestAnAutoencoderRefusesWhatIsMissingCompletely(t *testing.T) {
	for text, want := range map[string]string{
		"a,b,c\n1,,3\n2,,4\n3,,\n4,,6\n":     `column "b" is missing in all fitted samples`,
		"a,b,c\n1,1,3\n2,2,\n,,\n4,,6\n":     "line 4: all of the sample's values are missing; remove it",
		"a,b,c\n1,1,3\n,,\n2,2,\n,,\n4,,6\n": "line 3: all of the sample's values are missing; remove it",
	} {
		path := filepath.Join(t.TempDir(), "x.csv")
		fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
		f, err := config.Load("models.toml", fmt.Appendf(nil, `[model.m]
dataset = { name = "csv", file = %q, missing = "nan", validation = 0 }
encoder = [{ kind = "dense", units = 2 }]
`, path))
		fatal.If(t, err)
		m, err := f.Model("m")
		fatal.If(t, err)
		out := filepath.Join(t.TempDir(), "run")
		_, err = Run(t.Context(), m, Options{Backend: engine.Backend{}, Out: out})
		expect.Error(t, err, want)
		expect.AnyError(t, expect.Err(os.Stat(out)), "a folder was written")
	}
}
