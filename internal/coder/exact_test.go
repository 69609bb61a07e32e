package coder_test

import (
	"fmt"
	"math"
	"os"
	"testing"

	"tessera"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/losses"
)

// survey writes positions in metres, which lie close together compared with their size, and returns the path and the positions.
func survey(t *testing.T) (path string, positions []float64) {
	t.Helper()
	text := "northing,easting\n"
	for i := range 60 {
		north, east := 5_400_000+4*math.Mod(float64(i)*0.6180339887, 1), 380_000+3*math.Mod(float64(i)*0.4142135623, 1)
		positions = append(positions, north, east)
		text += fmt.Sprintf("%v,%v\n", north, east)
	}
	path = t.TempDir() + "/survey.csv"
	fatal.If(t, os.WriteFile(path, []byte(text), 0o600))
	return path, positions
}

// A run encodes numbers of float64 as its training did: the same codes from the data set, from a file and by an encoder of centred values,
// also after it was stored. For one component of PCA the codes vary as the samples, not in the steps of float32.
func TestARunScalesInFloat64WhatItsTrainingDid(t *testing.T) {
	path, positions := survey(t)
	trained := untrained(t, fmt.Sprintf("kind = \"pca\"\ncomponents = 2\ndataset = { name = \"csv\", file = %q, scale = \"standardise\" }", path), tessera.Options{})
	run, err := tessera.Open(trained.Path, tessera.Options{})
	fatal.If(t, err)
	defer run.Close()
	if !run.Scaling().IsExact() {
		t.Fatal("the scaling of the stored run is not exact")
	}
	rows, err := data.ReadRows(t.Context(), path, run.Shape(), run.Model.Dataset.Source)
	fatal.If(t, err)
	codes, err := run.Codes(t.Context(), rows.Images)
	fatal.If(t, err)
	encoder, err := run.Centred().Encoder(tessera.EncoderOptions{})
	fatal.If(t, err)
	defer encoder.Close()
	centred := make([]float32, len(positions))
	run.Scaling().Centre(centred, positions)
	streamed, err := encoder.Encode(t.Context(), nil, centred)
	fatal.If(t, err)
	output, err := run.ValuesOf(t.Context(), losses.Output, rows.Images)
	fatal.If(t, err)
	scaling := run.Scaling()
	for i := range positions {
		if math.Abs(float64(streamed[i]-codes[i])) > 1e-6 {
			t.Fatalf("code %d: got %v from the encoder, want %v", i, streamed[i], codes[i])
		}
		if math.Abs(float64(output[i])-positions[i]) > 0.26 { // half a step of float32
			t.Fatalf("output %d: got %v, want %v", i, output[i], positions[i])
		}
	}
	for i := range 60 { // two components keep all distances
		want := math.Hypot((positions[2*i]-scaling.ShiftOf(0))*float64(scaling.Factor[0]), (positions[2*i+1]-scaling.ShiftOf(1))*float64(scaling.Factor[1]))
		expect.Near(t, math.Hypot(float64(codes[2*i]), float64(codes[2*i+1])), want, 1e-5, "sample", i)
	}
}
