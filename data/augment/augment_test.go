package augment

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// tried returns n augmented images of src, with different random numbers.
func tried(t *testing.T, a Augmentation, src []float32, shape []int, n int) [][]float32 {
	t.Helper()
	change, err := Prepare(a, shape)
	fatal.If(t, err)
	r := rand.New(rand.NewPCG(11, 13))
	var all [][]float32
	for range n {
		dst := make([]float32, len(src))
		change(dst, src, r)
		all = append(all, dst)
	}
	return all
}

// near reports whether a frequency of count/n is compatible with the probability p: within five standard deviations.
func near(count, n int, p float64) bool {
	return math.Abs(float64(count)-p*float64(n)) <= 5*math.Sqrt(p*(1-p)*float64(n))
}

func TestARectangleHasTheAreaThatIsDrawnAndLiesInTheImage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	scale, ratio := []float64{0.2, 0.9}, []float64{0.5, 2}
	for _, in := range []size{{28, 28, 1}, {10, 40, 3}, {1, 9, 1}, {50, 1, 1}} {
		sum := 0.0
		for range 2000 {
			b := drawBox(r, scale, ratio, in)
			h, w := float64(in.height), float64(in.width)
			area := b.height * b.width / (h * w)
			sum += area
			if !(area > 0.2-1e-9 && area < 0.9+1e-9) {
				t.Fatalf("%+v: %+v has the area %v", in, b, area)
			}
			if b.top < 0 || b.left < 0 || b.top+b.height > h+1e-9 || b.left+b.width > w+1e-9 {
				t.Fatalf("%+v: %+v is not inside", in, b)
			}
			// If a rectangle with this area and this ratio fits, the ratio is in the given range.
			shape := b.width / b.height
			if low, high := area*w/h, w/h/area; shape < max(0.5, low)-1e-9 && high > 0.5 || shape > min(2, high)+1e-9 && low < 2 {
				t.Fatalf("%+v: %+v has the ratio %v; [%v, %v] fits", in, b, shape, low, high)
			}
		}
		expect.Near(t, sum/2000, 0.55, 0.03, in, "the mean area")
	}
}

func TestFlipMirrorsEachWayByItself(t *testing.T) {
	src := []float32{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 0, 0.55} // shape 2 x 3 x 2
	count := map[[2]bool]int{}
	for _, got := range tried(t, &Flip{Horizontal: true, Vertical: true, Probability: 0.3}, src, []int{2, 3, 2}, 2000) {
		for _, way := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
			var want []float32
			for y := range 2 {
				for x := range 3 {
					from, at := y, x
					if way[0] {
						from = 1 - y
					}
					if way[1] {
						at = 2 - x
					}
					want = append(want, src[(from*3+at)*2], src[(from*3+at)*2+1])
				}
			}
			if slices.Equal(got, want) {
				count[way]++
			}
		}
	}
	for way, p := range map[[2]bool]float64{{false, false}: 0.49, {false, true}: 0.21, {true, false}: 0.21, {true, true}: 0.09} {
		if !near(count[way], 2000, p) {
			t.Errorf("vertical, horizontal = %v: %d of 2000, want about %v", way, count[way], 2000*p)
		}
	}
}

func TestShiftMovesByEveryDistanceEquallyOften(t *testing.T) {
	const height, width, most, n = 4, 5, 2, 5000
	src := lists.Of(height*width, func(i int) float32 { return float32(i+1) / 32 })
	count := map[[2]int]int{}
	for _, got := range tried(t, &Shift{Pixels: most, Fill: 1}, src, []int{height, width}, n) {
		for dy := -most; dy <= most; dy++ {
			for dx := -most; dx <= most; dx++ {
				want := make([]float32, len(src))
				for y := range height {
					for x := range width {
						want[y*width+x] = 1
						if i, j := y-dy, x-dx; i >= 0 && i < height && j >= 0 && j < width {
							want[y*width+x] = src[i*width+j]
						}
					}
				}
				if slices.Equal(got, want) {
					count[[2]int{dy, dx}]++
				}
			}
		}
	}
	expect.Equal(t, len(count), 25, "different shifts")
	for by, c := range count {
		if !near(c, n, 1.0/25) {
			t.Errorf("by %v: %d of %d", by, c, n)
		}
	}
}

func TestEraseReplacesOneRectangle(t *testing.T) {
	src := slices.Repeat([]float32{0.5}, 20*30*2)
	src[0] = 0.25 // so that the mean is not 0.5
	for fill, isFill := range map[string]func(float32) bool{
		"black": func(v float32) bool { return v == 0 }, "white": func(v float32) bool { return v == 1 },
		"mean": func(v float32) bool { return v == float32(0.5-0.25/1200) }, "random": func(v float32) bool { return v != 0.5 },
	} {
		erased := 0
		for _, got := range tried(t, &Erase{Probability: 0.7, Scale: []float64{0.1, 0.3}, Ratio: []float64{0.5, 2}, Fill: fill}, src, []int{20, 30, 2}, 400) {
			top, left, bottom, right, changed := 20, 30, -1, -1, 0
			for i, v := range got {
				if v != src[i] {
					y, x := i/60, i%60/2
					top, left, bottom, right = min(top, y), min(left, x), max(bottom, y), max(right, x)
					if changed++; !isFill(v) {
						t.Fatalf("%s: value %v", fill, v)
					}
				}
			}
			if changed == 0 {
				continue
			}
			erased++
			area := (bottom - top + 1) * (right - left + 1) * 2
			if changed != area {
				t.Fatalf("%s: %d values of %d in the rectangle change", fill, changed, area)
			}
			if share := float64(area) / 1200; share < 0.08 || share > 0.33 { // the area is rounded to whole pixels
				t.Fatalf("%s: a share of %v is erased", fill, share)
			}
		}
		if !near(erased, 400, 0.7) {
			t.Errorf("%s: %d of 400 images are changed", fill, erased)
		}
	}
}

func TestBrightnessAndContrastScaleByOneFactor(t *testing.T) {
	src := []float32{0, 0.125, 0.25, 0.5, 0.3125} // the mean is 0.2375
	spread := func(name string, factors []float64) {
		if low, high := slices.Min(factors), slices.Max(factors); low < 0.7-1e-6 || low > 0.72 || high > 1.3+1e-6 || high < 1.28 {
			t.Errorf("%s: factors from %v to %v, want 0.7 to 1.3", name, low, high)
		}
	}
	var bright, contrast []float64
	for _, got := range tried(t, &Brightness{By: 0.3}, src, []int{1, 5}, 500) {
		f := float64(got[3] / src[3])
		bright = append(bright, f)
		for i, v := range src {
			if want := f * float64(v); math.Abs(float64(got[i])-want) > 1e-6 {
				t.Fatalf("brightness: a factor of %v makes %v of %v", f, got, src)
			}
		}
	}
	for _, got := range tried(t, &Contrast{By: 0.3}, src, []int{1, 5}, 500) {
		f := (float64(got[3]) - 0.2375) / (0.5 - 0.2375)
		contrast = append(contrast, f)
		for i, v := range src {
			if want := max(0.2375+f*(float64(v)-0.2375), 0); math.Abs(float64(got[i])-want) > 1e-6 {
				t.Fatalf("contrast: a factor of %v makes %v of %v", f, got, src)
			}
		}
	}
	spread("brightness", bright)
	spread("contrast", contrast)
}

func TestNoiseHasItsMeanAndStandardDeviation(t *testing.T) {
	src := slices.Repeat([]float32{0.5}, 10000)
	got := tried(t, &Noise{Std: 0.05}, src, []int{100, 100}, 1)[0]
	sum, squares := 0.0, 0.0
	for _, v := range got {
		d := float64(v) - 0.5
		sum, squares = sum+d, squares+d*d
	}
	if m := sum / 10000; math.Abs(m) > 5*0.05/100 {
		t.Errorf("mean %v, want 0", m)
	}
	expect.Near(t, math.Sqrt(squares/10000), 0.05, 0.002, "standard deviation")
}

// The oracle computes the maximum and the minimum over the disk by plain loops. Package morph has separate tests.
func TestDilateAndErodeTakeTheExtremesOverTheDisk(t *testing.T) {
	in, radius := size{6, 7, 2}, 2
	src := patterned(in)
	extreme := func(better func(a, b float32) float32) []float32 {
		out := slices.Clone(src)
		for y := range in.height {
			for x := range in.width {
				for c := range in.channels {
					for v := max(0, y-radius); v <= min(in.height-1, y+radius); v++ {
						for u := max(0, x-radius); u <= min(in.width-1, x+radius); u++ {
							if (v-y)*(v-y)+(u-x)*(u-x) <= radius*radius {
								at := (y*in.width+x)*in.channels + c
								out[at] = better(out[at], src[(v*in.width+u)*in.channels+c])
							}
						}
					}
				}
			}
		}
		return out
	}
	for _, c := range []struct {
		a    Augmentation
		want []float32
	}{
		{&Dilate{Radius: radius, Probability: 0.4}, extreme(func(a, b float32) float32 { return max(a, b) })},
		{&Erode{Radius: radius, Probability: 0.4}, extreme(func(a, b float32) float32 { return min(a, b) })},
	} {
		changed := 0
		for _, got := range tried(t, c.a, src, []int{in.height, in.width, in.channels}, 500) {
			if slices.Equal(got, c.want) {
				changed++
			} else if !slices.Equal(got, src) {
				t.Fatalf("%T gives %v", c.a, got)
			}
		}
		if !near(changed, 500, 0.4) {
			t.Errorf("%T: %d of 500 images are changed", c.a, changed)
		}
	}
}

func TestAugmentationsThatClipSayIt(t *testing.T) {
	clip := map[string]bool{"brightness": true, "contrast": true, "noise": true, "blur": true}
	for _, e := range Registry.All() {
		expect.Equal(t, Clips(e.New()), clip[e.Name], e.Name, "clips")
	}
	if Clips(&Blur{}) || Clips(nil) {
		t.Error("an augmentation that changes nothing clips")
	}
}
