package study

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tessera"
	"tessera/classical/generate"
	"tessera/internal/sweep"
	"tessera/losses"
)

// Drawing measures images that are drawn from the generative models of a page: their precision and recall, see [tessera.Run.Quality].
type Drawing struct {
	Features string   // model of the sweep whose codes are the features: its first finished trial; no other images of it are drawn
	Count    int      // number of images for each seed
	Seeds    []uint64 // seeds of the images
}

// drawnColumns are the columns of a [Drawing]. The codes of the last two are drawn from a mixture of normal distributions.
var drawnColumns = []string{"precision", "recall", "precision, mixture", "recall, mixture"}

// measure returns the numbers of the drawn columns for each trial that draws images: of every seed of the images. It is empty if no
// trial of the model of the features has finished.
func (d *Drawing) measure(ctx context.Context, s *sweep.Sweep, results *sweep.Results, o tessera.Options) (map[string][][]float64, error) {
	finished := slices.DeleteFunc(slices.Clone(results.Trials), func(row sweep.Row) bool { return row.Metrics == nil })
	i := slices.IndexFunc(finished, func(row sweep.Row) bool { return row.Model == d.Features })
	if i < 0 {
		return nil, nil
	}
	features, err := tessera.Open(sweep.TrialPath(s.Path, finished[i].Trial), o)
	if err != nil {
		return nil, err
	}
	defer features.Close()
	all := map[string][][]float64{}
	for _, row := range finished {
		if row.Model == d.Features {
			continue
		}
		if all[row.Trial], err = d.of(ctx, sweep.TrialPath(s.Path, row.Trial), features, o); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// of returns the numbers of one trial.
func (d *Drawing) of(ctx context.Context, path string, features *tessera.Run, o tessera.Options) ([][]float64, error) {
	run, err := tessera.Open(path, o)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	numbers, g := make([][]float64, len(drawnColumns)), generate.New(run)
	for i, draw := range []func(context.Context, int, uint64) ([]float32, error){g.Draw, g.DrawFromCodes} {
		if i == 1 && run.Decodes() != nil {
			break
		}
		for _, seed := range d.Seeds {
			images, err := draw(ctx, d.Count, seed)
			if errors.Is(err, tessera.ErrNoSampler) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			q, err := generate.Measure(ctx, run, images, features, losses.Code)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			numbers[2*i], numbers[2*i+1] = append(numbers[2*i], q.Precision), append(numbers[2*i+1], q.Recall)
		}
	}
	return numbers, nil
}
