package hooks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tessera/config/part"
	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// torso returns a training with 3 units whose 3 images have pixel 0 and one other pixel.
func torso(t *testing.T, scale float32) *fake {
	return newFake(t, []float32{scale, scale, 0, 0}, []float32{scale, 0, scale, 0}, []float32{scale, 0, 0, scale})
}

// Units 0 and 1 reconstruct the first two images, unit 2 a tenth of pixel 3: it is the one that becomes the background.
func TestTheBackgroundGetsTheUnitThatContributesLeast(t *testing.T) {
	for _, scale := range []float32{0.01, 1, 100} {
		f := torso(t, scale)
		w, b, d := f.parameters[0].Data, f.parameters[1].Data, f.parameters[2].Data
		w[1*3+0], w[2*3+1], w[3*3+2] = 1, 1, 1 // a unit for each of the pixels 1 to 3
		b[2] = -0.5 * scale
		copy(d, []float32{0.6, 0.8, 0, 0, 0.6, 0, 0.8, 0, 0, 0, 0, 0.1})
		for _, p := range f.parameters {
			for i := range p.State[0] {
				p.State[0][i] = 1
			}
		}
		begun(t, f, &Background{Quantile: 0.01, Sample: 100}, 1)
		alike(t, fmt.Sprint("the atoms of images times ", scale), d, []float32{0, 0.8, 0, 0, 0, 0, 0.8, 0, 1, 0, 0, 0})
		alike(t, "the weights", w, []float32{0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0})
		alike(t, "the bias", b, []float32{0, 0, 0})
		expect.Slice(t, f.parameters[2].State[0], make([]float32, 12), "the optimizer's state of the atoms")
		if !slices.Contains(f.projected, "decoder.0.weight") || !slices.Contains(f.projected, "encoder.0.weight") {
			t.Errorf("projected: %q", f.projected)
		}
	}
}

// Unit 2 has the background already. Unit 1 has it with a cosine above 0.9 too, and unit 0 with one of 0.03.
func TestOnlyOneUnitKeepsTheBackground(t *testing.T) {
	f := torso(t, 1)
	w, d := f.parameters[0].Data, f.parameters[2].Data
	w[1], w[2], w[3] = 1, 1, 1
	copy(d, []float32{0.03, 1, 0, 0, 1, 0, 0.3, 0, 2, 0, 0, 0})
	before := slices.Clone(w)
	begun(t, f, &Background{Sample: 100, Until: 7}, 7)
	alike(t, "the atoms", d, []float32{0.03, 1, 0, 0, 0, 0, 0.3, 0, 2, 0, 0, 0})
	alike(t, "the encoder's weights", w, before)

	copy(d, []float32{1, 1, 0, 0, 1, 0, 1, 0, 2, 0, 0, 0})
	kept := slices.Clone(d)
	for _, n := range []int{0, 8} { // before the first epoch, and after `until`
		begun(t, f, &Background{Sample: 100, Until: 7}, n)
		alike(t, fmt.Sprint("the atoms at epoch ", n), d, kept)
	}
}

// Of two candidates the one with the larger cosine is the owner, in any order. An atom that is hardly more than the background keeps it.
func TestTheBackgroundStaysWithTheAtomThatHasMostOfIt(t *testing.T) {
	for _, first := range []bool{true, false} {
		f := torso(t, 1)
		w, d := f.parameters[0].Data, f.parameters[2].Data
		w[0], w[1], w[2] = 1, 1, 1 // all units see pixel 0
		near, less := []float32{1, 0, 0.05, 0}, []float32{1, 0.4, 0, 0}
		if first {
			copy(d, slices.Concat(near, less, []float32{2, 0, 0.02, 0}))
		} else {
			copy(d, slices.Concat(less, near, []float32{2, 0, 0.02, 0}))
		}
		want := slices.Clone(d)
		want[map[bool]int{true: 4, false: 0}[first]] = 0 // the first pixel of less
		f.projected = nil
		begun(t, f, &Background{Sample: 100}, 1)
		alike(t, fmt.Sprint("the atoms, the larger one first: ", first), d, want)
		expect.Slice(t, f.projected, []string{"decoder.0.weight"}, "projected")
	}
}

// The background is (0.6, 0.8, 0, 0). Atom 1 has 0.1 of its first pixel, which becomes 0, and less than 0 of its second one, which stays.
// Atom 2 has a cosine of 0.08 with it.
func TestAnAtomLosesAtMostWhatItHas(t *testing.T) {
	for _, tied := range []bool{false, true} {
		f := newFake(t, []float32{0.6, 0.8, 1, 0}, []float32{0.6, 0.8, 0, 1})
		atoms := []float32{0.6, 0.8, 0, 0, 0.5, -0.1, 1, 0, 0.1, 0.025, 0, 1}
		want := []float32{0.6, 0.8, 0, 0, 0.5 - 0.6*0.22, -0.1, 1, 0, 0.1 - 0.6*0.08, 0, 0, 1} // w·v is 0.22 and 0.08
		w, d := f.parameters[0].Data, f.parameters[2].Data
		if tied {
			f.parameters = f.parameters[:2]
			for i, v := range atoms {
				w[i%4*3+i/4] = v
			}
		} else {
			w[0], w[2*3+1], w[3*3+2] = 1, 1, 1
			copy(d, atoms)
		}
		begun(t, f, &Background{Sample: 100}, 1)
		got := d
		if tied {
			got = make([]float32, 12)
			for i := range got {
				got[i] = w[i%4*3+i/4]
			}
		}
		alike(t, fmt.Sprint("the atoms, tied: ", tied), got, want)
	}
}

// A unit that is never active does not have the background, whatever its atom.
func TestASilentUnitDoesNotKeepTheBackground(t *testing.T) {
	f := torso(t, 1)
	w, b, d := f.parameters[0].Data, f.parameters[1].Data, f.parameters[2].Data
	w[1*3+0], w[2*3+1] = 1, 1
	b[2] = -9
	copy(d, []float32{0.6, 0.8, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0})
	begun(t, f, &Background{Sample: 100}, 1)
	alike(t, "the atoms", d, []float32{0, 0.8, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0})
	alike(t, "the bias", b, []float32{0, 0, 0})
}

func TestImagesWithoutABackgroundKeepTheirAtoms(t *testing.T) {
	many := func(lacking int) (images [][]float32) { // 200 images with pixel 0, but for some black ones
		for i := range 200 {
			x := []float32{1, 0, 0, 0}
			if i < lacking {
				x[0] = 0
			}
			images = append(images, x)
		}
		return images
	}
	for name, c := range map[string]struct {
		images [][]float32
		has    bool
	}{
		"parts that are not in all":  {[][]float32{{1, 1, 0, 0}, {0, 1, 1, 0}, {1, 0, 1, 0}}, false},
		"a background of 0.04":       {[][]float32{{0.2, 1, 0, 0}, {0.2, 0, 1, 0}, {0.2, 0, 0, 1}}, false},
		"a background of 0.06":       {[][]float32{{0.25, 1, 0, 0}, {0.25, 0, 1, 0}, {0.25, 0, 0, 1}}, true},
		"negative pixels":            {[][]float32{{-1, 1, 0, 0}, {-1, 0, 1, 0}}, false},
		"black images":               {[][]float32{{0, 0, 0, 0}}, false},
		"200 images, 2 of them less": {many(2), true},
		"200 images, 3 of them less": {many(3), false},
	} {
		f := newFake(t, c.images...)
		f.parameters[0].Data[1] = 1
		d := f.parameters[2].Data
		copy(d, []float32{0.5, 0.5, 0, 0, 0.5, 0, 0.5, 0, 0.5, 0, 0, 0.5})
		before := slices.Clone(d)
		begun(t, f, &Background{Quantile: 0.01, Sample: 1000}, 1)
		expect.Equal(t, !slices.Equal(d, before), c.has, name, "changed =", d)
	}
}

// Pixel 0 is in all images. Half of all values are hidden, and read as 0. Of images with 0.04 of their mean square there it is none.
func TestUnknownValuesDoNotCountForTheBackground(t *testing.T) {
	for pixel, background := range map[float32]bool{1: true, 0.2: false} {
		pixels := make([]float32, 100*4)
		for i := range 100 {
			copy(pixels[4*i:], []float32{pixel, 0, 0, 0})
			pixels[4*i+1+i%3] = 1
		}
		images, err := data.NewFloats([]int{4}, pixels, nil)
		fatal.If(t, err)
		set := &data.Set{Name: "torso", Shape: []int{4}, Train: images}
		hidden, err := set.Split(data.Selection{Fit: "train", Hide: 0.5}, 1)
		fatal.If(t, err)
		f := newFake(t, pixels[:4])
		f.images = hidden.Fit
		d := f.parameters[2].Data
		copy(d, []float32{0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1})
		begun(t, f, &Background{Quantile: 0.01, Sample: 100}, 1)
		expect.Equal(t, d[0] == 1, background, "pixel", pixel, "a background", d)
	}
}

// There are as many units as pixels, and all are active with 1 in every image, whatever pixels are unknown.
func TestUnknownPixelsDoNotChangeCodes(t *testing.T) {
	images, err := data.NewFloats([]int{4}, make([]float32, 100*4), nil)
	fatal.If(t, err)
	hidden, err := (&data.Set{Name: "black", Shape: []int{4}, Train: images}).Split(data.Selection{Fit: "train", Hide: 0.5}, 1)
	fatal.If(t, err)
	f := newFakeOf(t, 4, []float32{0, 0, 0, 0})
	f.images = hidden.Fit
	for i := range 4 {
		f.parameters[1].Data[i], f.parameters[2].Data[i*4+i] = 1, 1
	}
	weights, err := unitWeightsOf(f)
	fatal.If(t, err)
	h := &separating{unitWeights: weights, sample: 100, encode: linear{f, Code}}
	if effects, err := h.effects(); err != nil || !slices.Equal(effects, []float64{100, 100, 100, 100}) {
		t.Errorf("got %v (%v)", effects, err)
	}
}

func TestBackgroundWantsAtomsThatAddUpToImages(t *testing.T) {
	suits := func(encoder, decoder []int, kind string) error {
		return (&Background{}).Suits(Declared{Pixels: 4, Decodes: kind != "", Decoder: kind, Parameters: func(glob string) []*Parameter {
			switch shape := map[bool][]int{true: encoder, false: decoder}[strings.HasPrefix(glob, "encoder")]; {
			case shape == nil:
				return nil
			default:
				return []*Parameter{{Path: glob, Shape: shape, Trainable: true}}
			}
		}})
	}
	for _, c := range []struct {
		encoder, decoder []int
		kind, key        string
	}{
		{[]int{4, 3}, []int{3, 4}, "dense", ""},
		{[]int{4, 3}, nil, "tied", ""},
		{[]int{4, 3}, nil, "", "decoder"},
		{[]int{4, 4}, nil, "relu", "decoder"},
		{[]int{4, 3}, []int{3, 4}, "max_plus", "decoder"},
		{[]int{4, 3}, []int{3, 8}, "dense", "decoder"},
		{[]int{3, 3, 1, 8}, []int{3, 4}, "dense", "encoder"},
		{[]int{5, 3}, []int{3, 5}, "dense", "encoder"},
	} {
		err := suits(c.encoder, c.decoder, c.kind)
		var wrong part.KeyError
		if got, _ := err.(part.KeyError); err != nil {
			wrong = got
		}
		expect.Equal(t, wrong.Key, c.key, "encoder", c.encoder, "decoder", c.kind, c.decoder)
	}
	for name, change := range map[string]func(p *Parameter){
		"is not from the units to the pixels": func(p *Parameter) { p.Shape = []int{2, 6} },
		"is frozen":                           func(p *Parameter) { p.Trainable = false },
	} {
		f := torso(t, 1)
		change(f.parameters[2])
		if _, err := (&Background{}).Attach(f); err == nil || name == "is frozen" && err.(part.KeyError).Key != "freeze" {
			t.Errorf("a decoder that %s: got %v", name, err)
		}
	}
}
