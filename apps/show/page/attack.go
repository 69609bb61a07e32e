package page

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"slices"

	"tessera/apps/show"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/data"
	"tessera/internal/numeral"
	"tessera/internal/vectors"
)

// The attacks of a page: by gradients on the first images of known class, and a black box on fewer of them, because it asks for one image at a time.
const (
	attackedImages = 500
	attackSteps    = 40
	queriedImages  = 100
	attackQueries  = 500
	shownExamples  = 8
)

// attacks attacks every head that a loss compares with labels, if the options name a norm. why is the reason for attacking none.
func (v *view) attacks(ctx context.Context, o Options) (list []doc.Block, why string, err error) {
	if o.Attack == "" {
		return nil, "", nil
	}
	if method := v.run.Model.Training().Method; method != "" {
		return nil, fmt.Sprintf("%s is a baseline (kind %q), which has no gradients", v.run.Model.Name, method), nil
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
		list = append(list, one)
	}
	if len(list) == 0 {
		why = v.run.Model.Name + " has no head that a loss compares with labels"
	}
	return list, why, nil
}

// attack returns the section about attacks on one head: a table, the accuracy over the radius and over the number of queries, and examples.
func (v *view) attack(ctx context.Context, head string, norm attack.Norm, radii []float64) (*doc.Group, error) {
	middle, pgd := radii[len(radii)/2], &attack.PGD{Steps: attackSteps}
	trial := func(a attack.Attack, epsilon float64) attack.Trial {
		return attack.Trial{Attack: a, Ball: attack.Ball{Norm: norm, Epsilon: epsilon}, Seed: 1}
	}
	var trials []attack.Trial
	for _, a := range []attack.Attack{&attack.FGSM{}, pgd} {
		for _, epsilon := range radii {
			trials = append(trials, trial(a, epsilon))
		}
	}
	shown := len(radii) + len(radii)/2
	trials[shown].Keep = shownExamples
	white, err := runs.Judge(ctx, v.run, runs.HeadAttack{Head: head, Trials: trials, Limit: attackedImages})
	if err != nil {
		return nil, err
	}
	black := trial(&attack.Square{Queries: attackQueries}, middle)
	if black.Suits(v.run.Shape()) != nil { // its squares do not fit
		black = trial(&attack.Score{Queries: attackQueries, Estimator: attack.NES, Samples: 20}, middle)
	}
	few, err := runs.Judge(ctx, v.run, runs.HeadAttack{Head: head, Trials: []attack.Trial{trial(pgd, middle), black}, Limit: queriedImages})
	if err != nil {
		return nil, err
	}
	noun, by := v.noun(), few.Trials[1]
	table := show.JudgedTable(white, "")
	table.Rows = append(table.Rows, show.JudgedTable(&attack.Judgement{Trials: few.Trials[1:]}, fmt.Sprintf(", first %d", few.Images)).Rows[1:]...)
	examples, err := v.examples(head, white, white.Trials[shown].Examples)
	if err != nil {
		return nil, err
	}
	g := &doc.Group{Title: "Head " + head + " under attack", Blocks: []doc.Block{doc.Remark("Each %s may be changed by at most epsilon in the %s norm. fgsm and pgd follow the gradient of the cross entropy; "+
		"%s only asks for logits. The accuracy is that of the worst example that the attack finds, an upper bound of the robust accuracy, with a 95 %% interval over %ss; "+
		"the risk is the mean cross entropy. The first %d %ss are attacked.", noun, norm, by.Method, noun, white.Images, noun)}}
	for _, m := range few.Masked {
		g.Blocks = append(g.Blocks, doc.Warning("%s", m))
	}
	g.Blocks = append(g.Blocks, table, overRadius(white, radii), overQueries(by, few.Images, noun), examples)
	return g, nil
}

// overRadius draws the accuracy under each attack over the radius of the ball.
func overRadius(j *attack.Judgement, radii []float64) *doc.Curves {
	c := &doc.Curves{Title: "accuracy under attack", X: "epsilon", Y: "accuracy", About: "Accuracy over epsilon."}
	for trials := range slices.Chunk(j.Trials, len(radii)) {
		l := doc.Line{Name: trials[0].Method, X: append([]float64{0}, radii...), Y: []float64{j.Accuracy.Value}}
		for _, t := range trials {
			l.Y = append(l.Y, t.Accuracy.Value)
		}
		c.Lines = append(c.Lines, l)
	}
	return c
}

// overQueries draws the accuracy over the number of queries.
func overQueries(r attack.TrialResult, images int, noun string) *doc.Curves {
	l := doc.Line{Name: r.Method}
	for _, p := range r.Curve {
		l.X, l.Y = append(l.X, float64(p.Queries)), append(l.Y, p.Accuracy)
	}
	return &doc.Curves{Title: "accuracy after queries", X: "queries", Y: "accuracy", Log: true, Lines: []doc.Line{l},
		About: fmt.Sprintf("Accuracy over the number of queries of %s at epsilon %s, first %d %ss.", r.Method, numeral.Exact(r.Epsilon), images, noun)}
}

// examples draws the first images with their worst examples.
func (v *view) examples(head string, j *attack.Judgement, worst []float32) (*doc.Figure, error) {
	logits, err := v.coder.Value(head, worst)
	if err != nil {
		return nil, err
	}
	names, classes := v.run.HeadClasses(head), len(logits)/len(j.Classes)
	name := func(class int) string {
		if class < len(names) {
			return names[class]
		}
		return fmt.Sprint(class)
	}
	var taken []string
	for i, class := range j.Classes {
		as, err := vectors.Class(logits[i*classes : (i+1)*classes])
		if err != nil {
			return nil, err
		}
		taken = append(taken, name(class)+" → "+name(as))
	}
	clean, attacked := v.scaled(j.Clean), v.scaled(worst)
	differences := slices.Clone(attacked)
	for i, x := range clean {
		differences[i] -= x
	}
	row := func(caption string, tone figures.Tone, images []float32) figures.ImageRow {
		return figures.ImageRow{Caption: caption, Shape: v.run.Shape(), Images: images, Columns: shownExamples, Tone: tone, Names: taken}
	}
	draw := figures.ImageRows
	if len(v.run.Shape()) < 2 {
		draw = figures.HeatMaps
	}
	f, err := draw(row(v.noun()+"s", v.tone, clean), row("examples by pgd", v.tone, attacked), row("differences", figures.Signed, differences))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_ = png.Encode(&b, f.Image()) // a buffer takes everything
	return &doc.Figure{Title: "Examples by pgd", PNG: b.Bytes(), About: fmt.Sprintf("Each %s, its example at epsilon %s, and the difference: red is an increase, blue a decrease. Classes and what the head predicts for the examples: ",
		v.noun(), numeral.Exact(j.Trials[len(j.Trials)/2].Epsilon)) + fmt.Sprint(taken)}, nil
}
