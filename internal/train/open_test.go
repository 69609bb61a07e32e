package train

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tessera/config"
	"tessera/data"
	"tessera/graph/tape"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/train/checkpoint"
	"tessera/internal/train/folder"
	"tessera/internal/train/internal/faulty"
)

func itoa(n int) string { return strconv.Itoa(n) }

// edit replaces old by new in a run's config.toml.
func edit(t *testing.T, run, old, new string) {
	t.Helper()
	path := filepath.Join(run, folder.Config)
	text := read(t, run, folder.Config)
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("config.toml does not hold %q:\n%s", old, text)
	}
	fatal.If(t, os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(new), 1), 0o666))
}

// half returns a run that was interrupted in its second epoch.
func half(t *testing.T, sets ...string) string {
	t.Helper()
	run := place(t)
	ctx, backend := cancelledAt(7, tape.Backend{})
	if _, err := Run(ctx, model(t, everything, sets...), Options{Backend: backend, Out: run}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	return run
}

func TestOpenPrefersTheBestThenTheModelThenTheState(t *testing.T) {
	run := half(t)
	want := []struct {
		file        string
		epoch, step int
	}{{folder.Best, 1, 4}, {folder.Model, 1, 7}, {folder.State, 1, 7}}
	var models []*Trained
	for _, w := range want {
		o, err := Open(run)
		fatal.If(t, err)
		if filepath.Base(o.Path) != w.file || o.Epoch != w.epoch || o.Step != w.step {
			t.Errorf("got %s of epoch %d, step %d; want %+v", o.Path, o.Epoch, o.Step, w)
		}
		models = append(models, o)
		fatal.If(t, os.Remove(o.Path))
	}
	for i, p := range models[1].Parameters {
		expect.Slice(t, p.Data, models[2].Parameters[i].Data, p.Path, "differs between model and state")
	}
	var missing *checkpoint.Error
	if _, err := Open(run); !errors.As(err, &missing) || !strings.HasSuffix(missing.Path, folder.State) {
		t.Errorf("without any checkpoint: got %v", err)
	}
	if _, err := Resume(t.Context(), run, Options{Backend: tape.Backend{}}); !errors.As(err, &missing) || !strings.HasSuffix(missing.Path, folder.State) {
		t.Errorf("resuming without a state: got %v", err)
	}
	expect.Is(t, expect.Err(Open(t.TempDir())), folder.ErrNotRun, "an empty folder")
}

func TestMismatchesAreRefusedByName(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"units = 8", "units = 9", "encoder.2.units: got 9, want 8"},
		{"bias = true", "bias = false", "encoder.2.bias: got false, want true"},
		{`kind = "adam"`, `kind = "adamw"`, `optimizer.kind: got "adamw", want "adam"`},
		{"batch = 32\nmin_epoch_steps = 0\nseed = 1", "batch = 33\nmin_epoch_steps = 0\nseed = 2", "train.batch: got 33, want 32; train.seed: got 2, want 1"},
		{"min_epoch_steps = 0", "min_epoch_steps = 24", "train.min_epoch_steps: got 24, want 0"},
		{"batch = 32", "batch = 31", "train.batch: got 31, want 32"},
		{"validation = 0.25", "validation = 0.5", "dataset.validation: got 0.5, want 0.25"},
		{"weight = 0.001", "weight = 0.002", "loss.1.weight: got 0.002, want 0.001"},
		{"learning_rate = 0.01", "learning_rate = 0.02", "optimizer.learning_rate: got 0.02, want 0.01"},
		{"[model.everything.train]", "[model.everything.hook.average]\n\n[model.everything.train]", "hook.average.decay: got 0.999, want nothing"},
		{"[[model.everything.loss]]\nkind = \"kl\"\ntarget = 0.1\non = \"code\"\nweight = 0.001\n", "", "loss.1.kind: got \"weight_decay\", want \"kl\""},
	} {
		run := half(t)
		edit(t, run, c.old, c.new)
		refusedByName(t, run, c.want)
	}
}

// The error for a state whose tensors or counters do not match the declaration names them.
func TestStatesThatDoNotFitTheirDeclarationAreRefusedByName(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"units = 8", "units = 9", "encoder.2.weight has shape [64 8], want [64 9]"},
		{"bias = true", "bias = false", "encoder.2.bias"},
		{"validation = 0.25", "validation = 0.5", "112 samples"},
		{"[model.everything.train]", "[model.everything.hook.average]\n\n[model.everything.train]", " is missing"},
		{"[[model.everything.loss]]\nkind = \"kl\"\ntarget = 0.1\non = \"code\"\nweight = 0.001\n", "", "sums of 3 loss terms, want 2"},
	} {
		run := half(t)
		edit(t, run, c.old, c.new)
		recode(t, run, folder.State, func(f *checkpoint.File) { f.Metadata[declarationKey] = string(read(t, run, folder.Config)) })
		refusedByName(t, run, c.want)
	}
}

// refusedByName checks that resuming a run returns an error about its state, and does not change the state.
func refusedByName(t *testing.T, run, want string) {
	t.Helper()
	before := read(t, run, folder.State)
	_, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}})
	if mismatch, ok := errors.AsType[*checkpoint.Error](err); !ok || !mismatch.Mismatch || !strings.Contains(err.Error(), want) || !strings.HasSuffix(mismatch.Path, folder.State) {
		t.Errorf("got %v, want a *checkpoint.Error with %q", err, want)
	}
	if !bytes.Equal(before, read(t, run, folder.State)) {
		t.Errorf("%s: the refused state was changed", want)
	}
}

// recode changes a checkpoint of a run and updates its checksum.
func recode(t *testing.T, run, name string, change func(f *checkpoint.File)) {
	t.Helper()
	path := filepath.Join(run, name)
	f, err := checkpoint.Read(path)
	fatal.If(t, err)
	change(f)
	b, err := checkpoint.Encode(f, nil)
	fatal.If(t, err)
	fatal.If(t, os.WriteFile(path, b, 0o666))
}

func TestARunOfAnotherFormatIsRefused(t *testing.T) {
	run := half(t)
	const earlier = "written by tessera 0.1.0 or an earlier 0.2.0-dev: open it with that version; this version reads format 2"
	for format, want := range map[string]string{"": earlier, "tessera 1": earlier, "tessera 3": `its format is "tessera 3"; this version reads format 2`} {
		for _, name := range []string{folder.Best, folder.State} {
			recode(t, run, name, func(f *checkpoint.File) {
				if f.Metadata[formatKey] = format; format == "" {
					delete(f.Metadata, formatKey)
				}
			})
		}
		refused := func(what, name string, err error) {
			t.Helper()
			if other, ok := errors.AsType[*FormatError](err); !ok || filepath.Base(other.Path) != name || other.Format != format || !strings.Contains(err.Error(), want) {
				t.Errorf("format %q: %s: got %v, want a *FormatError of %s with %q", format, what, err, name, want)
			}
		}
		_, err := Open(run)
		refused("Open", folder.Best, err)
		_, err = OpenFS(os.DirFS(run), ".")
		refused("OpenFS", folder.Best, err)
		_, err = Read(folder.Best, read(t, run, folder.Best))
		refused("Read", folder.Best, err)
		_, err = Resume(t.Context(), run, Options{Backend: tape.Backend{}})
		refused("Resume", folder.State, err)
		_, err = ArithmeticOf(run)
		refused("ArithmeticOf", folder.State, err)
		if s := StatusOf(run); s.State != Damaged || !strings.Contains(s.Problem, want) {
			t.Errorf("format %q: StatusOf: got %s: %s", format, s.State, s.Problem)
		}
	}
}

// A part of another module is unknown to this program.
func TestARunOfAnotherProgramIsNamedAsSuch(t *testing.T) {
	_, err := Declared("runs/r/config.toml", []byte("[model.m]\nencoder = [{ kind = \"dense\", units = 2 }]\nloss = [{ kind = \"charbonnier\" }]\n"))
	expect.Error(t, err, `unknown kind "charbonnier"`)
	expect.Error(t, err, "open the run with the one that trained it")
}

func TestTheScheduleOfATrainingMayBeEdited(t *testing.T) {
	constant := []string{`optimizer.schedule={kind="constant"}`, "hook.early_stopping.patience=5"}
	run := half(t, constant...)
	edit(t, run, "epochs = 4", "epochs = 5")
	edit(t, run, "patience = 5", "patience = 7")
	edit(t, run, "min_delta = 0.0", "min_delta = 0.001")
	edit(t, run, "checkpoint_seconds = 0.0", "checkpoint_seconds = 2.0")
	r, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}})
	if err != nil || r.Epochs != 5 {
		t.Errorf("got %+v, %v", r, err)
	}
	run = half(t, append(constant, "hook.early_stopping=false")...)
	edit(t, run, "[model.everything.train]", "[model.everything.hook.early_stopping]\npatience = 3\n\n[model.everything.train]")
	if r, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}}); err != nil || r.BestEpoch < 2 {
		t.Errorf("early stopping from the second epoch on: got %+v, %v", r, err)
	}
}

// Without early stopping Open must return the last epoch.
func TestARunWithDisabledEarlyStoppingHasNoBestEpoch(t *testing.T) {
	run := half(t)
	if !exists(run, folder.Best) {
		t.Fatal("early stopping kept no epoch")
	}
	edit(t, run, "[model.everything.hook.early_stopping]\npatience = 100\nmin_delta = 0.0\n\n", "")
	fatal.If(t, expect.Err(Resume(context.Background(), run, Options{Backend: tape.Backend{}})))
	sameRun(t, run, trained(t, model(t, everything, "hook.early_stopping=false"), Options{}).Run)
	if m, err := Open(run); err != nil || m.Epoch != 4 {
		t.Errorf("opened: %+v, %v; want the last epoch", m, err)
	}
}

// The process may end at any operation on the disk. The resumed run has the same bytes as a run that was started with the
// larger number of epochs.
func TestARunIsTrainedForLonger(t *testing.T) {
	const constant = `optimizer.schedule={kind="constant"}`
	want := trained(t, model(t, everything, constant, "train.epochs=3"), Options{})
	short := trained(t, model(t, everything, constant, "train.epochs=2"), Options{}).Run
	for at := 1; ; at++ {
		run := place(t)
		fatal.If(t, os.CopyFS(run, os.DirFS(short)))
		_, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}, Epochs: 3, Disk: &faulty.Disk{DieAt: at}})
		if err == nil {
			sameRun(t, run, want.Run)
			break
		}
		if !errors.Is(err, faulty.ErrDead) {
			t.Fatal(err)
		}
		fatal.If(t, expect.Err(Resume(context.Background(), run, Options{Backend: tape.Backend{}, Epochs: 3})))
		sameRun(t, run, want.Run)
	}
	for epochs, problem := range map[int]string{2: "epochs: got 2, but 3 are complete", -1: "epochs: got -1"} {
		expect.Error(t, expect.Err(Resume(context.Background(), want.Run, Options{Backend: tape.Backend{}, Epochs: epochs})), problem, epochs, "epochs")
	}
}

func TestARunThatCannotBeTrainedForLongerKeepsItsDeclaration(t *testing.T) {
	run := trained(t, model(t, everything), Options{}).Run
	before := read(t, run, folder.Config)
	gone := errors.New("the data are gone")
	_, err := Resume(context.Background(), run, Options{Backend: tape.Backend{}, Epochs: 9,
		Load: func(context.Context, *config.Dataset) (*data.Set, error) { return nil, gone }})
	expect.Is(t, err, gone)
	expect.Equal(t, string(read(t, run, folder.Config)), string(before), "config.toml was edited")
}

func TestAResumeWithOtherArithmeticWarns(t *testing.T) {
	for n, want := range map[int]string{1: "", 2: "1 thread, not 2"} {
		var got []string
		_, err := Resume(context.Background(), half(t), Options{Backend: tape.Backend{}, Team: threads(t, n), Warn: func(text string) { got = append(got, text) }})
		if err != nil || len(got) > 0 != (want != "") || len(got) > 0 && !strings.Contains(got[0], want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestDamageIsRefusedByName(t *testing.T) {
	for _, name := range []string{folder.State, folder.Best, folder.Model} {
		run := half(t)
		if name == folder.Model {
			_ = os.Remove(filepath.Join(run, folder.Best))
		}
		path := filepath.Join(run, name)
		b := read(t, run, name)
		b[len(b)/2] ^= 4
		fatal.If(t, os.WriteFile(path, b, 0o666))
		var err error
		if name == folder.State {
			_, err = Resume(context.Background(), run, Options{Backend: tape.Backend{}})
		} else {
			_, err = Open(run)
		}
		if damaged, ok := errors.AsType[*checkpoint.Error](err); !ok || damaged.Path != path || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: got %v, want a *checkpoint.Error that names it", name, err)
		}
	}
}

func TestResumeReplacesDamagedDerivedFiles(t *testing.T) {
	want := trained(t, model(t, everything), Options{}).Run
	run := half(t)
	for _, name := range []string{folder.Model, folder.Best} {
		fatal.If(t, os.WriteFile(filepath.Join(run, name), []byte("x"), 0o666))
	}
	fatal.If(t, expect.Err(Resume(context.Background(), run, Options{Backend: tape.Backend{}})))
	sameRun(t, run, want)
}

func TestResumeOfAFinishedRunChangesNothingAndNeedsNoData(t *testing.T) {
	folderOf := t.TempDir()
	images := filepath.Join(folderOf, "images.npy")
	writeNPY(t, images, 10, 4)
	m := model(t, `
[model.own]
dataset = { name = "npy", images = "`+images+`", height = 2, width = 2 }
encoder = [{ kind = "dense", units = 2 }]
train = { epochs = 2, batch = 4 }
`)
	r := trained(t, m, Options{})
	fatal.If(t, os.Remove(images))
	before := snapshot(t, r.Run)
	again, err := Resume(context.Background(), r.Run, Options{Backend: tape.Backend{}})
	fatal.If(t, err)
	if !again.AlreadyFinished || again.Epochs != 2 || again.Step != 6 {
		t.Errorf("got %+v", again)
	}
	after := snapshot(t, r.Run)
	expect.Equal(t, len(before), len(after), "files came or went", before, after)
	for name, s := range before {
		expect.Equal(t, after[name], s, name, "was touched", s, "then")
	}
	if o, err := Open(r.Run); err != nil || !slices.Equal(o.Shape, []int{2, 2}) {
		t.Errorf("the model cannot be opened without its data: %v", err)
	}
}

// snapshot records the modification time and the contents of every file of a run.
func snapshot(t *testing.T, run string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(run, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		files[path] = info.ModTime().String() + string(read(t, filepath.Dir(path), filepath.Base(path)))
		return err
	})
	fatal.If(t, err)
	return files
}

// writeNPY writes n vectors of width bytes.
func writeNPY(t *testing.T, path string, n, width int) {
	t.Helper()
	header := "{'descr': '|u1', 'fortran_order': False, 'shape': (" + itoa(n) + ", " + itoa(width) + "), }"
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	b = append(b, header...)
	for i := range n * width {
		b = append(b, byte(i*37))
	}
	fatal.If(t, os.WriteFile(path, b, 0o666))
}

func TestANewRunIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	run := half(t)
	before := snapshot(t, run)
	m := model(t, everything)
	expect.Is(t, expect.Err(Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: run})), folder.ErrExists)
	for name, s := range snapshot(t, run) {
		expect.Equal(t, before[name], s, name, "was touched")
	}
	r, err := Run(context.Background(), m, Options{Backend: tape.Backend{}, Out: run, Force: true})
	if err != nil || r.Step != 16 {
		t.Errorf("with force: %v, %v", r, err)
	}
}

func TestRunsWithoutAPlaceAreNumbered(t *testing.T) {
	t.Chdir(t.TempDir())
	m := model(t, everything, "train.epochs=1")
	for _, want := range []string{"everything", "everything-2", "everything-3"} {
		r, err := Run(context.Background(), m, Options{Backend: tape.Backend{}})
		fatal.If(t, err)
		expect.Equal(t, r.Run, filepath.Join("runs", want), want)
	}
}

// The model of a result, which is computed in memory, equals the model in the folder to the bit.
func TestTheModelOfAResultIsThatOfItsFolder(t *testing.T) {
	texts := map[string]*config.Model{"last epoch": model(t, everything, "hook.early_stopping=false"), "best epoch": model(t, everything), "average": model(t, everything, averaged),
		"full batch": model(t, searched, "train.epochs=2")}
	for kind := range fitted {
		texts[kind] = baseline(t, kind)
	}
	for name, m := range texts {
		r := trained(t, m, Options{})
		finished, err := Resume(context.Background(), r.Run, Options{Backend: tape.Backend{}})
		fatal.If(t, err)
		want, err := Open(r.Run)
		fatal.If(t, err)
		for _, got := range []*Trained{r.Trained, finished.Trained} {
			if string(got.Spec.Text()) != string(want.Spec.Text()) || got.Path != want.Path || got.Epoch != want.Epoch || got.Step != want.Step ||
				!reflect.DeepEqual(got.Scaling, want.Scaling) || got.Range != want.Range || !slices.Equal(got.Classes, want.Classes) {
				t.Errorf("%s: got %s, epoch %d, step %d, %v, %v", name, got.Path, got.Epoch, got.Step, got.Scaling, got.Range)
			}
			if want.Baseline != nil {
				if !reflect.DeepEqual(got.Baseline.State(), want.Baseline.State()) {
					t.Errorf("%s: another state", name)
				}
				continue
			}
			for i, p := range want.Parameters {
				q := got.Parameters[i]
				if q.Path != p.Path || q.Frozen != p.Frozen || q.Trainable != p.Trainable || !slices.Equal(q.Data, p.Data) {
					t.Errorf("%s: %s differs", name, p.Path)
				}
			}
		}
	}
}
