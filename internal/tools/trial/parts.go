package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show/figures"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/data"
	"tessera/metrics"
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

// ball is a norm with the radii of its curve; shown are those of the table, of which square and the column "of clean" have the first.
type ball struct {
	norm  attack.Norm
	radii []float64
	shown []float64
}

var balls = []ball{
	{attack.L2, []float64{0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2}, []float64{0.5, 1}},
	{attack.LInf, []float64{0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15}, []float64{0.03, 0.05, 0.1}},
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

// parts prints a table for each head and data set, and one that compares pgd with square, and draws a figure of the
// linear heads for each norm.
func (s *study) parts() error {
	lines := map[attack.Norm][]figures.SweptLine{}
	compared := make([][]string, len(representations))
	titles := []string{"PGD / `square`"}
	for _, head := range heads {
		for _, dataset := range datasets {
			fmt.Printf("\n## %s, %s head\n\n", dataset, head.name)
			columns := []string{"head on", "rate", "clean"}
			for _, b := range balls {
				for k, radius := range b.shown {
					columns = append(columns, fmt.Sprintf("%s %g", b.norm, radius))
					if k == 0 {
						columns = append(columns, "of clean")
					}
				}
				columns = append(columns, fmt.Sprintf("%s distance", b.norm))
				titles = append(titles, fmt.Sprintf("%s, %s, %s %g", dataset, head.name, b.norm, b.shown[0]))
			}
			header(columns...)
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
				cells, pair := rowOf(r, runs)
				row(cells...)
				compared[i] = append(compared[i], pair...)
				for _, b := range balls {
					if head == heads[0] {
						lines[b.norm] = drawn(lines[b.norm], i, r, b, panel(dataset), runs)
					}
				}
			}
		}
	}
	fmt.Println("\n## square")
	fmt.Println()
	header(titles...)
	for i, r := range representations {
		row(append([]string{r.title}, compared[i]...)...)
	}
	var panels []string
	for _, dataset := range datasets {
		panels = append(panels, panel(dataset))
	}
	for _, b := range balls {
		f, err := figures.Swept("radius of the "+string(b.norm)+" ball", panels, lines[b.norm])
		if err != nil {
			return err
		}
		if err := f.Save(filepath.Join(s.out, "robust-parts-"+string(b.norm)+".png")); err != nil {
			return err
		}
	}
	return nil
}

// panel is the title of the panel of a data set.
func panel(dataset string) string { return "accuracy, " + dataset + ", " + heads[0].name + " head" }

// rowOf returns the row of a representation, and for each ball the accuracies under pgd and square.
func rowOf(r representation, runs []*measured) (cells, pairs []string) {
	over := func(of func(m *measured) float64) (values []float64) {
		for _, m := range runs {
			values = append(values, of(m))
		}
		return values
	}
	cells = []string{r.title, fmt.Sprint(runs[0].Rate), spread(over(func(m *measured) float64 { return m.Clean }), 3)}
	for _, b := range balls {
		at := func(k int) func(*measured) float64 {
			return func(m *measured) float64 { return m.Curves[b.norm][slices.Index(b.radii, b.shown[k])] }
		}
		for k := range b.shown {
			cells = append(cells, spread(over(at(k)), 3))
			if k == 0 {
				cells = append(cells, fmt.Sprintf("%.2f", mean(over(func(m *measured) float64 { return at(0)(m) / m.Clean }))))
			}
		}
		cells = append(cells, spread(over(func(m *measured) float64 { return m.distance(b) }), 3))
		pairs = append(pairs, fmt.Sprintf("%.3f / %.3f", mean(over(func(m *measured) float64 { return m.PGD[b.norm] })), mean(over(func(m *measured) float64 { return m.Square[b.norm] }))))
	}
	return cells, pairs
}

// drawn returns lines with the accuracy of a representation in one panel added to line i: means with standard deviations over
// the seeds.
func drawn(lines []figures.SweptLine, i int, r representation, b ball, panel string, runs []*measured) []figures.SweptLine {
	radii := append([]float64{0}, b.radii...)
	if i == len(lines) {
		lines = append(lines, figures.SweptLine{Name: strings.Trim(r.title, "`")})
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
			j, err := runs.Judge(s.ctx, run, runs.HeadAttack{Trials: trials, Limit: whiteImages})
			if err != nil {
				return nil, err
			}
			m.Clean = j.Accuracy.Value
			for _, t := range j.Trials {
				m.Curves[b.norm] = append(m.Curves[b.norm], t.Accuracy.Value)
			}
			if j, err = runs.Judge(s.ctx, run, runs.HeadAttack{Limit: blackImages, Trials: []attack.Trial{
				pgd(b.norm, b.shown[0], 2, attack.Margin), blackBox(attack.Square, b.norm, b.shown[0], squareQueries)}}); err != nil {
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
