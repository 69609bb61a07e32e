package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"tessera"
	"tessera/attack"
	"tessera/data"
	"tessera/metrics"
	"tessera/show/figures"
)

// representation is an input of a head.
type representation struct{ title, model, encoder string }

var representations = []representation{
	{"pixels", "on-pixels", ""},
	{"pixels, weight decay", "on-pixels-decay", ""},
	{"principal components", "on-pca", "pca"},
	{"`shallow`", "on-shallow", "shallow"},
	{"`parts-free`", "on-parts-free", "parts-free"},
	{"`parts`", "on-parts", "parts"},
}

// heads lists the layers of the two heads.
var heads = []struct{ name, layers string }{
	{"linear", `[{ kind = "dense" }]`},
	{"hidden", `[{ kind = "dense", units = 100, activation = "relu" }, { kind = "dense" }]`},
}

// rates lists the learning rates, one of which is selected on the validation images.
var rates = []float64{1e-3, 1e-2, 1e-1}

// ball is a norm with radii: those of its curve, those of the table (shown), and that of the square attack (at).
type ball struct {
	norm  attack.Norm
	radii []float64
	shown []float64
	at    float64
}

var balls = []ball{
	{attack.L2, []float64{0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2}, []float64{0.5, 1}, 0.5},
	{attack.LInf, []float64{0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15}, []float64{0.03, 0.05}, 0.03},
}

const squareQueries = 500

// measured contains the results of attacks on one head.
type measured struct {
	Rate   float64
	Clean  float64                   // accuracy on the attacked images without an attack
	Curves map[attack.Norm][]float64 // robust accuracy at the radii of the ball
	PGD    map[attack.Norm]float64   // robust accuracy on the images of the square attack
	Square map[attack.Norm]float64
}

// distance returns the median distance of correctly classified images from the decision boundary, as found by pgd: the radius
// at which half of them resist. Between the radii of a ball the curve is interpolated linearly.
func (m *measured) distance(b ball) float64 {
	before, at := 1.0, 0.0
	for i, accuracy := range m.Curves[b.norm] {
		share := accuracy / m.Clean
		if share <= 0.5 {
			return at + (b.radii[i]-at)*(before-0.5)/(before-share)
		}
		before, at = share, b.radii[i]
	}
	return math.Inf(1)
}

// parts prints a table for each data set and head, and draws a figure for each norm.
func (s *study) parts() error {
	lines := map[attack.Norm][]figures.SweptLine{}
	for _, head := range heads {
		for _, dataset := range datasets {
			fmt.Printf("\n## %s, %s head\n\n", dataset, head.name)
			titles := []string{"head on", "learning rate", "clean"}
			for _, b := range balls {
				for _, e := range b.shown {
					titles = append(titles, fmt.Sprintf("%s %g", b.norm, e))
				}
				titles = append(titles, fmt.Sprintf("of clean, %s %g", b.norm, b.at), fmt.Sprintf("median %s distance", b.norm), fmt.Sprintf("PGD, square at %g", b.at))
			}
			header(titles...)
			for i, r := range representations {
				var runs []*measured
				for seed := 1; seed <= seeds; seed++ {
					m, err := s.head(r, head.name, head.layers, dataset, seed)
					if err != nil {
						return err
					}
					runs = append(runs, m)
				}
				if err := s.close(); err != nil {
					return err
				}
				print(r, runs)
				for _, b := range balls {
					lines[b.norm] = drawn(lines[b.norm], i, r, b, dataset+", "+head.name+" head", runs)
				}
			}
		}
	}
	for _, b := range balls {
		f, err := figures.Swept("radius of the "+string(b.norm)+" ball", panels(), lines[b.norm])
		if err != nil {
			return err
		}
		if err := f.Save(filepath.Join(s.out, "robust-parts-"+string(b.norm)+".png")); err != nil {
			return err
		}
	}
	return nil
}

// panels returns the titles of the panels of a figure.
func panels() (names []string) {
	for _, head := range heads {
		for _, dataset := range datasets {
			names = append(names, dataset+", "+head.name+" head")
		}
	}
	return names
}

// print prints the row of a representation.
func print(r representation, runs []*measured) {
	over := func(digits int, of func(m *measured) float64) string {
		var values []float64
		for _, m := range runs {
			values = append(values, of(m))
		}
		return spread(values, digits)
	}
	cells := []string{r.title, fmt.Sprint(runs[0].Rate), over(3, func(m *measured) float64 { return m.Clean })}
	for _, b := range balls {
		at := func(e float64) func(*measured) float64 {
			return func(m *measured) float64 { return m.Curves[b.norm][slices.Index(b.radii, e)] }
		}
		for _, e := range b.shown {
			cells = append(cells, over(3, at(e)))
		}
		cells = append(cells, over(3, func(m *measured) float64 { return at(b.at)(m) / m.Clean }),
			over(3, func(m *measured) float64 { return m.distance(b) }),
			over(3, func(m *measured) float64 { return m.PGD[b.norm] })+", "+over(3, func(m *measured) float64 { return m.Square[b.norm] }))
	}
	row(cells...)
}

// drawn returns lines with the accuracy of a representation in one panel added to line i: means with standard deviations over
// the seeds.
func drawn(lines []figures.SweptLine, i int, r representation, b ball, panel string, runs []*measured) []figures.SweptLine {
	radii := append([]float64{0}, b.radii...)
	if i == len(lines) {
		lines = append(lines, figures.SweptLine{Name: r.title})
		for _, e := range radii {
			lines[i].Points = append(lines[i].Points, figures.SweptPoint{X: e, Split: string(data.TestSplit)})
		}
	}
	for k := range radii {
		var mean, squares float64
		for _, m := range runs {
			v := append([]float64{m.Clean}, m.Curves[b.norm]...)[k]
			mean += v / seeds
			squares += v * v / seeds
		}
		p := &lines[i].Points[k]
		p.Mean.Set(panel, mean)
		p.Deviation.Set(panel, math.Sqrt(max(0, squares-mean*mean)*seeds/(seeds-1)))
	}
	return lines
}

// head attacks one head and returns the results.
func (s *study) head(r representation, name, layers, dataset string, seed int) (*measured, error) {
	return cell(s, fmt.Sprintf("%s-%s-%s-%d", name, r.model, dataset, seed), func() (*measured, error) {
		rate, err := s.rate(r, name, layers, dataset)
		if err != nil {
			return nil, err
		}
		run, err := s.trainedHead(r, name, layers, dataset, seed, rate)
		if err != nil {
			return nil, err
		}
		m := &measured{rate, 0, map[attack.Norm][]float64{}, map[attack.Norm]float64{}, map[attack.Norm]float64{}}
		for _, b := range balls {
			var trials []attack.Trial
			for _, e := range b.radii {
				trials = append(trials, pgd(b.norm, e, 2, attack.Margin))
			}
			j, err := run.AttackHead(s.ctx, tessera.HeadAttack{Trials: trials, Limit: whiteImages})
			if err != nil {
				return nil, err
			}
			m.Clean = j.Accuracy.Value
			for _, t := range j.Trials {
				m.Curves[b.norm] = append(m.Curves[b.norm], t.Accuracy.Value)
			}
			if j, err = run.AttackHead(s.ctx, tessera.HeadAttack{Limit: blackImages, Trials: []attack.Trial{
				pgd(b.norm, b.at, 2, attack.Margin), blackBox(attack.Square, b.norm, b.at, squareQueries)}}); err != nil {
				return nil, err
			}
			m.PGD[b.norm], m.Square[b.norm] = j.Trials[0].Accuracy.Value, j.Trials[1].Accuracy.Value
		}
		return m, nil
	})
}

// rate returns the learning rate with the largest accuracy on the validation images, with seed 1.
func (s *study) rate(r representation, name, layers, dataset string) (best float64, err error) {
	most := -1.0
	for _, rate := range rates {
		accuracy, err := cell(s, fmt.Sprintf("%s-%s-%s-rate-%g", name, r.model, dataset, rate), func() (float64, error) {
			run, err := s.trainedHead(r, name, layers, dataset, 1, rate)
			if err != nil {
				return 0, err
			}
			chosen, err := metrics.Select("accuracy")
			if err != nil {
				return 0, err
			}
			result, err := run.EvaluateOn(s.ctx, data.ValidationSplit, chosen)
			if err != nil {
				return 0, err
			}
			accuracy, _ := result.Values.Number("accuracy")
			return accuracy, nil
		})
		if err != nil {
			return 0, err
		}
		if accuracy > most {
			best, most = rate, accuracy
		}
	}
	return best, nil
}

// trainedHead returns a head, trained on a frozen encoder. The encoder is trained with the same seed.
func (s *study) trainedHead(r representation, name, layers, dataset string, seed int, rate float64) (*tessera.Run, error) {
	sets := []string{"head.class.layers=" + layers, fmt.Sprintf("optimizer.learning_rate=%g", rate)}
	if r.encoder != "" {
		folder := s.folder(r.encoder, dataset, seed)
		if _, err := s.run(folder, r.encoder, dataset, seed); err != nil {
			return nil, err
		}
		sets = append(sets, "start.run="+folder)
	}
	return s.run(s.folder(fmt.Sprintf("%s-%s-%g", name, r.model, rate), dataset, seed), r.model, dataset, seed, sets...)
}
