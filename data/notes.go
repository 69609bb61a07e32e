package data

import (
	"context"
	"fmt"
	"math"

	"tessera/internal/random"
)

func init() {
	Registry.Register("notes", "generated spectra of chords of known notes, the true parts",
		func() Source { return &Notes{Notes: 24, Bins: 128, Count: 1000, Density: 0.12, Seed: 1} })
}

// Notes is a generated data set of sounds. A sample is the magnitude spectrum of a chord, a vector with one value per frequency.
// A note is a sum of harmonics, the true part: note k has the fundamental f_k = 3 · 2^(k/12) bins, a semitone above note k-1,
// and its spectrum at bin b is
//
//	sum over h = 1, 2, ... with h f_k < bins of  exp(-(b - h f_k)² / 2) / h
//
// divided by its maximum. A note is present in a chord with probability `density`, with a loudness that is uniform in [0.3, 1]; a
// chord is the sum of its notes, divided by the largest value of all chords. Notes an octave or a fifth apart share harmonics, so
// that parts overlap. `noise` adds the absolute value of Gaussian noise. Equal keys give equal chords, and each chord has its own
// random stream.
type Notes struct {
	Notes   int     `toml:"notes" want:"in [1,60]" doc:"number of notes, the true parts"`
	Bins    int     `toml:"bins" want:"in [16,4096]" doc:"number of frequencies, the values of a sample; above the fundamental of the highest note"`
	Count   int     `toml:"count" want:"in [1,1000000]" doc:"number of chords"`
	Density float64 `toml:"density" want:"in (0,1)" doc:"probability of a note to be present in a chord"`
	Noise   float64 `toml:"noise" want:">= 0" doc:"standard deviation of the Gaussian noise of every value"`
	Seed    uint64  `toml:"seed" doc:"seed of the chords; independent of the run's seed, so that all runs see the same chords"`
}

func fundamental(note int) float64 { return 3 * math.Exp2(float64(note)/12) }

func (s *Notes) Shape(Dirs) ([]int, bool) { return []int{s.Bins}, true }

func (s *Notes) Load(ctx context.Context, _ Dirs, _ Need) (*Set, error) {
	if top := fundamental(s.Notes - 1); top >= float64(s.Bins) {
		return nil, &Error{Dataset: "notes", Problem: fmt.Sprintf("the highest of %d notes has the frequency %.0f, but there are only %d bins", s.Notes, top, s.Bins),
			Hint: "want more bins or fewer notes"}
	}
	size, err := generatedSize("notes", s.Count, s.Bins)
	if err != nil {
		return nil, err
	}
	parts, kinds := make([][]float32, s.Notes), make([]string, s.Notes)
	for k := range parts {
		parts[k], kinds[k] = s.spectrum(k), "note"
	}
	values, most := make([]float32, size), float32(0)
	for i := range s.Count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r := random.Stream(s.Seed, "notes", uint64(i))
		chord := values[i*s.Bins : (i+1)*s.Bins]
		for _, part := range parts {
			if present, loudness := r.Float64() < s.Density, float32(0.3+0.7*r.Float64()); present {
				for b, v := range part {
					chord[b] += loudness * v
					most = max(most, chord[b])
				}
			}
		}
	}
	if most == 0 { // silence
		most = 1
	}
	for i := range values {
		values[i] /= most
	}
	for i := 0; s.Noise > 0 && i < s.Count; i++ {
		r := random.Stream(s.Seed, "notes noise", uint64(i))
		for b := range s.Bins {
			values[i*s.Bins+b] += float32(math.Abs(s.Noise * r.NormFloat64()))
		}
	}
	return known("notes", []int{s.Bins}, values, parts, kinds)
}

func (s *Notes) spectrum(note int) []float32 {
	f, spectrum, most := fundamental(note), make([]float64, s.Bins), 0.0
	for b := range spectrum {
		for h := 1.0; h*f < float64(s.Bins); h++ {
			d := float64(b) - h*f
			spectrum[b] += math.Exp(-d*d/2) / h
		}
		most = max(most, spectrum[b])
	}
	out := make([]float32, s.Bins)
	for b, v := range spectrum {
		out[b] = float32(v / most)
	}
	return out
}
