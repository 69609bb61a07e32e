package attack

import (
	"math"
	"math/rand/v2"

	"tessera/config/part"
	"tessera/internal/volume"
)

func init() {
	Registry.Register("square", "random squares, kept if they raise the margin", func() Attack { return &Square{Queries: usualQueries} })
}

// Square changes random squares of the image by epsilon and reads the logits. It keeps a change if the margin grows, and makes the squares
// smaller as the queries are used up. In l2 it moves pairs of hills instead, in images of at least 5 x 5 pixels.
//
// Source: Andriushchenko, Croce, Flammarion and Hein, Square Attack: a Query-Efficient Black-box Adversarial Attack via Random Search, 2020.
type Square struct {
	Queries int `toml:"queries" want:"in [1,1000000]" doc:"maximum number of queries for one sample"`
}

var _ BlackBox = (*Square)(nil)
var _ Suited = (*Square)(nil)

// Check returns the first invalid setting as a part.KeyError.
func (s *Square) Check() error { return within("queries", s.Queries, 1, mostQueries) }

func (s *Square) Budget() int { return s.Queries }

func (*Square) Suits(b Ball, shape []int) error {
	if g := gridOf(shape); b.Norm == L2 && (g.height < 5 || g.width < 5) {
		return part.KeyErrorf("norm", "got l2, in which square needs images of at least 5 x 5 pixels; choose linf")
	}
	return nil
}

func (s *Square) Perturb(t *Task, x []float32) error {
	g := gridOf(t.Shape)
	return t.EachRight(x, func(i int, x []float32, r *rand.Rand) (int, error) {
		clean, of, try := t.Sample(t.Clean, i), []int{i}, make([]float32, t.Pixels)
		best := math.Inf(-1)
		for q := range s.Queries {
			copy(try, x)
			side := g.side(q, s.Queries)
			switch {
			case t.Norm == LInf && q == 0:
				t.stripes(try, clean, g, r)
			case t.Norm == LInf:
				t.patch(try, clean, g, side, r)
			case q == 0:
				t.tiles(try, clean, g, r)
			default:
				t.hill(try, clean, g, side, r)
			}
			o, err := t.Outcomes(try, of)
			if err != nil {
				return -1, err
			}
			if o.Margin[0] > best {
				best = o.Margin[0]
				copy(x, try)
			}
			if o.Wrong[0] {
				return q + 1, nil
			}
		}
		return -1, nil
	})
}

// grid is the shape of images. A vector is an image of one row.
type grid struct{ height, width, channels int }

func gridOf(shape []int) grid {
	if len(shape) < 2 {
		return grid{1, volume.Of(shape), 1}
	}
	return grid{shape[0], shape[1], volume.Of(shape) / (shape[0] * shape[1])}
}

// side returns the side of the square for query q, in pixels. The square covers a fraction of 0.8 of the image at first
// and less later, as in the paper's schedule for 10,000 queries.
func (g grid) side(q, budget int) int {
	share := 0.8
	for _, n := range []int{10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000} {
		if q*10000/budget > n {
			share /= 2
		}
	}
	if g.height == 1 {
		return max(1, int(math.Round(share*float64(g.width))))
	}
	return min(max(1, int(math.Round(math.Sqrt(share*float64(g.height*g.width))))), max(1, min(g.height, g.width)-1))
}

// at returns the index of the value at row y, column x and channel c.
func (g grid) at(y, x, c int) int { return (y*g.width+x)*g.channels + c }

// window returns a random position for a square with the given side, and its size clipped to the image. In a vector the
// square is a segment.
func (g grid) window(side int, r *rand.Rand) (y, x, h, w int) {
	h, w = min(side, g.height), min(side, g.width)
	return r.IntN(g.height - h + 1), r.IntN(g.width - w + 1), h, w
}

// sign draws -1 or 1.
func sign(r *rand.Rand) float64 { return float64(2*r.IntN(2) - 1) }

// stripes sets x to the first perturbation in linf: every column of every channel moves up or down by epsilon.
func (b *Ball) stripes(x, clean []float32, g grid, r *rand.Rand) {
	for column := range g.width {
		for c := range g.channels {
			d := b.Epsilon * sign(r)
			for y := range g.height {
				k := g.at(y, column, c)
				x[k] = b.shifted(clean[k], d)
			}
		}
	}
}

// patch moves a random square up or down by epsilon, separately in every channel. It repeats the draw of the signs
// until a pixel changes.
func (b *Ball) patch(x, clean []float32, g grid, side int, r *rand.Rand) {
	top, left, h, w := g.window(side, r)
	for range 10 { // repeated, because with one channel and one pixel half of the draws change nothing
		changed := false
		for c := range g.channels {
			d := b.Epsilon * sign(r)
			for y := top; y < top+h; y++ {
				for column := left; column < left+w; column++ {
					k := g.at(y, column, c)
					v := b.shifted(clean[k], d)
					changed = changed || v != x[k]
					x[k] = v
				}
			}
		}
		if changed {
			return
		}
	}
}

// tiles sets x to the first perturbation in l2: pairs of hills with random signs, on a grid of about 5 x 5.
func (b *Ball) tiles(x, clean []float32, g grid, r *rand.Rand) {
	side := max(2, min(g.height, g.width)/5)
	delta := make([]float64, len(x))
	for top := 0; top+side <= g.height; top += side {
		for left := 0; left+side <= g.width; left += side {
			for c := range g.channels {
				up := sign(r)
				for k, v := range twoHills(side, r) {
					delta[g.at(top+k/side, left+k%side, c)] += up * v
				}
			}
		}
	}
	b.lengthened(x, clean, delta)
}

// hill replaces the perturbation in a random square by a pair of hills. A second random square is set to 0. The new
// perturbation has the length that the perturbations of both squares had.
func (b *Ball) hill(x, clean []float32, g grid, side int, r *rand.Rand) {
	if side = max(3, side); side%2 == 0 {
		side++
	}
	side = min(side, g.height, g.width)
	delta, squares := make([]float64, len(x)), 0.0
	for k, v := range x {
		delta[k] = float64(v) - float64(clean[k])
		squares += delta[k] * delta[k]
	}
	top, left, _, _ := g.window(side, r)
	top2, left2, _, _ := g.window(side, r)
	spare := max(0, b.Epsilon*b.Epsilon-squares) / float64(g.channels)
	for c := range g.channels {
		own, both := 0.0, 0.0
		for k := range side * side {
			v := delta[g.at(top+k/side, left+k%side, c)]
			own += v * v
		}
		for k := range side * side { // the second square, without the part that lies in the first
			y, column := top2+k/side, left2+k%side
			if y >= top && y < top+side && column >= left && column < left+side {
				continue
			}
			v := delta[g.at(y, column, c)]
			both += v * v
		}
		both += own
		fresh, length := twoHills(side, r), 0.0
		up := sign(r)
		for k := range fresh {
			fresh[k] = up*fresh[k] + delta[g.at(top+k/side, left+k%side, c)]/(1e-9+math.Sqrt(own))
			length += fresh[k] * fresh[k]
		}
		scale := math.Sqrt(spare+both) / max(math.Sqrt(length), 1e-9)
		for k := range side * side {
			delta[g.at(top2+k/side, left2+k%side, c)] = 0
		}
		for k, v := range fresh {
			delta[g.at(top+k/side, left+k%side, c)] = scale * v
		}
	}
	b.lengthened(x, clean, delta)
}

// lengthened sets x to the clean image plus delta, scaled to length epsilon.
func (b *Ball) lengthened(x, clean []float32, delta []float64) {
	squares := 0.0
	for _, v := range delta {
		squares += v * v
	}
	scale := b.Epsilon / max(math.Sqrt(squares), 1e-12)
	for k, c := range clean {
		x[k] = b.shifted(c, scale*delta[k])
	}
}

// twoHills returns a square with l2 norm 1. It contains a positive hill in its upper half and a negative hill in its
// lower half, or the same square transposed.
func twoHills(side int, r *rand.Rand) []float64 {
	values := make([]float64, side*side)
	half := side / 2
	put := func(from, rows int, up float64) {
		cy, cx := rows/2, side/2
		for n := range max(cy, cx) + 1 { // rings around the centre, the n-th with weight 1/(n+1)²
			for y := max(0, cy-n); y <= min(rows-1, cy+n); y++ {
				for x := max(0, cx-n); x <= min(side-1, cx+n); x++ {
					values[(from+y)*side+x] += up / float64((n+1)*(n+1))
				}
			}
		}
	}
	put(0, half, 1)
	put(half, side-half, -1)
	squares := 0.0
	for _, v := range values {
		squares += v * v
	}
	turned := r.IntN(2) == 1
	result := make([]float64, len(values))
	for y := range side {
		for x := range side {
			v := values[y*side+x] / math.Sqrt(squares)
			if turned {
				result[x*side+y] = v
			} else {
				result[y*side+x] = v
			}
		}
	}
	return result
}
