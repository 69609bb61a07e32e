package page

import (
	"context"
	"fmt"
	"math"
	"slices"

	"tessera/apps/show/figures"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/data"
	"tessera/internal/numeral"
)

// The attacks of a page: gradients on the first images of known class, and a black box on fewer of them, because it asks for one image at a time.
const (
	attackedImages = 500
	attackSteps    = 40
	queriedImages  = 100
	attackQueries  = 500
	shownExamples  = 8
)

// AttackPlots shows the attacks on one head: a table, the accuracy over the radius and over the number of queries, and examples.
type AttackPlots struct {
	Head, Noun, Norm string
	Images           int
	Rows             []AttackRow
	Radius, Queries  AttackCurves
	Epsilon          float64 // of Queries and Examples
	Black            string  // the method of Queries
	Queried          int     // number of images of Queries
	Examples         []AttackExample
	Masked           []string
}

// AttackRow is one attack in the table.
type AttackRow struct {
	Method, Epsilon, Accuracy, Interval, Risk string
}

// AttackCurves are accuracies in a plot of 100 by 100.
type AttackCurves struct {
	From, To string // of the axis
	Lines    []AttackLine
}

// AttackLine is the accuracy under one method.
type AttackLine struct {
	Name   string
	Class  string // of the style
	Points string // of an SVG polyline
	Marks  []AttackMark
}

// AttackMark is a point with its description.
type AttackMark struct{ X, Y, Text string }

// AttackExample is an image with its worst example in the ball.
type AttackExample struct {
	Clean, Attacked, Difference picture
	Class, Taken                string // the class, and the one that the head predicts for the example
	Wrong                       bool
}

// attacks attacks every head that a loss compares with labels, if the options name a norm. why is the reason for attacking none.
func (v *view) attacks(ctx context.Context, o Options) (list []AttackPlots, why string, err error) {
	if o.Attack == "" {
		return nil, "", nil
	}
	if kind := v.run.Model.Kind; v.run.Model.Baseline != nil {
		return nil, fmt.Sprintf("%s is a baseline (kind %q), which has no gradients", v.run.Model.Name, kind), nil
	}
	radii := slices.Clone(o.Radii)
	if len(radii) == 0 {
		radii = o.Attack.Radii()
	}
	slices.Sort(radii)
	radii = slices.Compact(radii)
	for _, head := range v.run.ClassHeads() {
		if v.run.ClassColumn(head) != data.LabelsColumn {
			continue
		}
		one, err := v.attack(ctx, head, o.Attack, radii)
		if err != nil {
			return nil, "", err
		}
		list = append(list, *one)
	}
	if len(list) == 0 {
		why = v.run.Model.Name + " has no head that a loss compares with labels"
	}
	return list, why, nil
}

// attack attacks one head.
func (v *view) attack(ctx context.Context, head string, norm attack.Norm, radii []float64) (*AttackPlots, error) {
	middle := radii[len(radii)/2]
	trial := func(method attack.Method, epsilon float64) attack.Trial {
		return attack.Trial{Attack: attack.Attack{Method: method, Norm: norm, Epsilon: epsilon, Steps: attackSteps, Seed: 1}}
	}
	var trials []attack.Trial
	for _, method := range []attack.Method{attack.FGSM, attack.PGD} {
		for _, epsilon := range radii {
			t := trial(method, epsilon)
			if epsilon == middle && method == attack.PGD {
				t.Keep = shownExamples
			}
			trials = append(trials, t)
		}
	}
	white, err := runs.Judge(ctx, v.run, runs.HeadAttack{Head: head, Trials: trials, Limit: attackedImages})
	if err != nil {
		return nil, err
	}
	black := trial(attack.Square, middle)
	if shape := v.run.Shape(); norm == attack.L2 && (len(shape) < 2 || min(shape[0], shape[1]) < 5) { // its squares do not fit
		black.Method = attack.Score
	}
	black.Queries = attackQueries
	few, err := runs.Judge(ctx, v.run, runs.HeadAttack{Head: head, Trials: []attack.Trial{trial(attack.PGD, middle), black}, Limit: queriedImages})
	if err != nil {
		return nil, err
	}
	p := &AttackPlots{Head: head, Noun: v.noun(), Norm: string(norm), Images: white.Images, Epsilon: middle, Black: string(black.Method), Queried: few.Images, Masked: few.Masked}
	p.rows(white, few.Trials[1])
	most := radii[len(radii)-1]
	p.Radius = AttackCurves{From: "0", To: numeral.Float(most)}
	for k, method := range []attack.Method{attack.FGSM, attack.PGD} {
		l := AttackLine{Name: string(method), Class: fmt.Sprint("line", k)}
		l.add(0, white.Accuracy.Value, fmt.Sprintf("clean: %s", percentOf(white.Accuracy)))
		for _, t := range white.Trials[k*len(radii) : (k+1)*len(radii)] {
			l.add(t.Epsilon/most, t.Accuracy.Value, fmt.Sprintf("%s, epsilon %s: %s", method, numeral.Float(t.Epsilon), percentOf(t.Accuracy)))
		}
		p.Radius.Lines = append(p.Radius.Lines, l)
	}
	p.Queries = AttackCurves{From: "1", To: fmt.Sprint(attackQueries)}
	l := AttackLine{Name: p.Black, Class: "line1"}
	for _, c := range few.Trials[1].Curve {
		l.add(math.Log(float64(c.Queries))/math.Log(attackQueries), c.Accuracy, fmt.Sprintf("after %d queries: accuracy %s", c.Queries, numeral.Float(c.Accuracy)))
	}
	p.Queries.Lines = []AttackLine{l}
	return p, p.examples(v, white, white.Trials[len(radii)+slices.Index(radii, middle)].Examples)
}

// percentOf is an accuracy with its interval.
func percentOf(a attack.Accuracy) string {
	return fmt.Sprintf("accuracy %s (%s to %s)", numeral.Float(a.Value), numeral.Float(a.Low), numeral.Float(a.High))
}

// add adds a point, both coordinates in [0,1].
func (l *AttackLine) add(x, y float64, text string) {
	m := AttackMark{fmt.Sprintf("%.1f", 100*x), fmt.Sprintf("%.1f", 100-100*y), text}
	l.Points += m.X + "," + m.Y + " "
	l.Marks = append(l.Marks, m)
}

// rows fills the table.
func (p *AttackPlots) rows(white *attack.Judgement, black attack.TrialResult) {
	row := func(method, epsilon string, a attack.Accuracy, risk float64) {
		p.Rows = append(p.Rows, AttackRow{method, epsilon, fmt.Sprintf("%.3f", a.Value), fmt.Sprintf("%.3f to %.3f", a.Low, a.High), numeral.Float(risk)})
	}
	row("clean", "", white.Accuracy, white.Risk)
	for _, t := range white.Trials {
		row(string(t.Method), numeral.Float(t.Epsilon), t.Accuracy, t.Risk)
	}
	row(fmt.Sprintf("%s, first %d", black.Method, p.Queried), numeral.Float(black.Epsilon), black.Accuracy, black.Risk)
}

// examples adds the first images with their worst examples.
func (p *AttackPlots) examples(v *view, j *attack.Judgement, worst []float32) error {
	logits, err := v.run.Value(p.Head, worst)
	if err != nil {
		return err
	}
	n := len(j.Classes)
	pixels, classes := len(worst)/n, len(logits)/n
	names := v.run.HeadClasses(p.Head)
	clean, attacked, differences := v.scaled(j.Clean), v.scaled(worst), make([]float32, len(worst))
	for i, x := range attacked {
		differences[i] = x - clean[i]
	}
	painter := v.painter.forVectors(clean, attacked)
	name := func(class int) string {
		if class < len(names) {
			return names[class]
		}
		return fmt.Sprint(class)
	}
	for i, class := range j.Classes {
		at, to := i*pixels, (i+1)*pixels
		taken, _, err := mostProbable(logits[i*classes : (i+1)*classes])
		if err != nil {
			return err
		}
		p.Examples = append(p.Examples, AttackExample{Clean: painter.draw(v.tone, clean[at:to]), Attacked: painter.draw(v.tone, attacked[at:to]),
			Difference: painter.draw(figures.Signed, differences[at:to]), Class: name(class), Taken: name(taken), Wrong: taken != class})
	}
	return nil
}
