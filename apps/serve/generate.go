package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"tessera"
	"tessera/classical/generate"
	"tessera/internal/lists"
	"tessera/internal/volume"
	"tessera/losses"
)

// Kinds of models that [Options.Generate] adds to a run. Their names are NAME.KIND.
const (
	sampling   = "sample"   // input seed: the first image that the run draws with it, as tessera sample does
	traversing = "traverse" // inputs unit and position: the image of the mean code, with the unit at this share of its range
)

// cannotMake is the error for a run whose model cannot generate images of a kind. Other errors depend on its data.
type cannotMake struct{ error }

func (e cannotMake) Unwrap() error { return e.error }

// makes returns the reason why a run cannot make images of a kind, as a [cannotMake], or another error, nil if it can. The reason is
// public, so it does not contain the path of the run.
func makes(kind string, run *tessera.Run, g *generate.Generator) error {
	if kind == traversing {
		if err := run.Decodes(); err != nil {
			return cannotMake{err}
		}
		return nil
	}
	if _, err := g.Draw(context.Background(), 1, 1); errors.Is(err, tessera.ErrNoSampler) {
		return cannotMake{cmp.Or(run.Decodes(), tessera.ErrNoSampler)}
	} else if err != nil { // it compiles, and fits the mixture of codes
		return fmt.Errorf("serve: %s: %w", kind, err)
	}
	return nil
}

// leaveOut records why images of these kinds are not served. It reads no images: a run that decodes codes can draw images and traverse.
func (l *loaded) leaveOut(run *tessera.Run, kinds []string) {
	l.missing = map[string]string{}
	for _, kind := range kinds {
		err := run.Decodes()
		if err != nil {
			err = makes(kind, run, generate.New(run))
		}
		if reason := (cannotMake{}); errors.As(err, &reason) {
			l.missing[kind] = reason.Error()
		} else if err != nil { // its text may contain paths
			l.missing[kind] = fmt.Sprintf("version %s fails to make it: start the server again to see the error", l.version)
		} else {
			l.missing[kind] = fmt.Sprintf("version %s can make it: start the server again to serve it", l.version)
		}
	}
}

// generates compiles a model that makes images of a run. The loaded model keeps the run open and closes it. The error is a
// [cannotMake] if no images can be drawn from the run, or if it does not decode the code alone.
func (o *Options) generates(kind string, run *tessera.Run, version string, stats *modelStats) (*loaded, error) {
	l := &loaded{version: version, shape: run.Shape(), pixels: volume.Of(run.Shape()), widest: 1, run: run}
	input := func(name string, whole bool, low, high float32) {
		f := &feature{name: name, column: name, shape: []int{1}, size: 1, datatypes: []string{typeFP32, typeFP64}, whole: whole, within: []float32{low, high}}
		if whole {
			f.datatypes = []string{typeINT64, typeINT32, typeFP32, typeFP64}
		}
		l.inputs = append(l.inputs, f)
	}
	var one func(ctx context.Context, inputs []float32) ([]float32, error)
	g := generate.New(run)
	if err := makes(kind, run, g); err != nil {
		return nil, errors.Join(err, run.Close())
	}
	if kind == sampling {
		input("seed", true, 0, 1<<24-1)
		one = func(ctx context.Context, inputs []float32) ([]float32, error) {
			return g.Draw(ctx, 1, uint64(inputs[0]))
		}
	} else {
		all := lists.Range(0, run.Units())
		t, err := g.Traverse(context.Background(), generate.Traversal{Units: all, Steps: 2})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("serve: %s: %w", kind, err), run.Close())
		}
		input("unit", true, 0, float32(run.Units()-1))
		input("position", false, 0, 1)
		one = func(_ context.Context, inputs []float32) ([]float32, error) {
			return run.Decode(t.Code(int(inputs[0]), inputs[1]))
		}
	}
	out := &output{name: losses.Output, quoted: quoted(losses.Output), datatype: typeFP32, shape: run.Shape(), inputs: l.inputs}
	width := len(l.inputs)
	out.batch = &batcher{in: width, out: l.pixels, most: o.MaxBatch, wait: o.MaxWait, places: int64(o.Queue), observe: stats.batch(losses.Output),
		encode: func(ctx context.Context, dst, rows []float32) ([]float32, error) {
			for ; len(rows) > 0; rows = rows[width:] {
				image, err := one(ctx, rows[:width])
				if err != nil {
					return dst, err
				}
				dst = append(dst, image...)
			}
			return dst, nil
		}}
	out.batch.start(o.Workers)
	l.outputs = []*output{out}
	return l, nil
}
