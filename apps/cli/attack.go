package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"tessera"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/losses"
)

var _ Command = (*attackCommand)(nil)

func init() {
	Commands.Register("attack", "Measure a run on adversarial examples", func() Command {
		usual := attack.Default()
		c := &attackCommand{runFlags: forRuns(), Steps: usual.Steps, Seed: 1, Queries: 1000, Samples: 20, Estimator: attack.NES, Objectives: []attackObjective{attackObjective(attack.CrossEntropy)}}
		for _, m := range usual.Method.Choices() {
			c.Methods = append(c.Methods, attackMethod(m))
		}
		for _, n := range usual.Norm.Choices() {
			c.Norms = append(c.Norms, attack.Norm(n))
		}
		return c
	})
}

// attackMethod is the name of an attack, on reconstructions or on a head.
type attackMethod string

// Choices lists the attacks.
func (attackMethod) Choices() []string {
	return append(attack.PGD.Choices(), string(attack.Square), string(attack.Score), string(attack.Decision))
}

// attackObjective is the name of what an attack on a head maximises.
type attackObjective string

// Choices lists the objectives.
func (attackObjective) Choices() []string {
	return []string{string(attack.CrossEntropy), string(attack.Margin)}
}

// attackCommand is the command attack. Its flags select the attacks: each method in each norm with each epsilon.
type attackCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	jsonFlag
	Methods  []attackMethod `flag:"method" doc:"attacks that compute the adversarial examples; square, score and decision, which know no gradients, are those of a head"`
	Norms    []attack.Norm  `flag:"norm" doc:"norms of the perturbation"`
	Epsilons []float64      `flag:"epsilon" want:"> 0" doc:"largest norm of the perturbation, for pixels in [0,1]" default:"0.01,0.03,0.1 for linf; 0.25,0.75,2.5 for l2"`
	Steps    int            `flag:"steps" want:"in [1,1000]" doc:"number of steps of pgd"`
	StepSize float64        `flag:"step-size" want:">= 0" doc:"step size of pgd, in the norm" default:"2.5 epsilon / steps"`
	Restarts int            `flag:"restarts" want:"in [0,1000]" doc:"further starts of pgd from random points of the ball; each image keeps its worst example"`
	Seed     uint64         `flag:"seed" doc:"seed of these points"`
	Limit    int            `flag:"limit" want:">= 0" doc:"number of images to attack, from the first; 0 attacks all"`

	On          string            `flag:"on" doc:"head whose predictions are attacked: class; without it reconstructions are, or the only head of a run without a decoder"`
	Objectives  []attackObjective `flag:"objective" doc:"what attacks on a head maximise; margin is the largest other logit minus that of the class"`
	RandomStart bool              `flag:"random-start" doc:"on a head, the first start of pgd is a random point of the ball too"`
	Early       bool              `flag:"stop-early" doc:"on a head, pgd leaves an image at its first misclassification: faster, with smaller risks"`
	Queries     int               `flag:"queries" want:"> 0" doc:"number of queries of square, score and decision for one image of a head"`
	Estimator   attack.Estimator  `flag:"estimator" doc:"how score estimates gradients"`
	Samples     int               `flag:"samples" want:"> 0" doc:"number of directions of one estimate of nes and spsa"`
	From        string            `flag:"from" is:"folder" doc:"run that the adversarial examples of a head are computed on; they are measured on RUN"`
	FromHead    string            `flag:"from-head" needs:"from" doc:"head of the run --from that the examples are computed on" default:"the head with the name --on, or the only head"`
}

// ofHeads lists the flags that apply only to attacks on heads.
var ofHeads = []string{"objective", "random-start", "stop-early", "from", "from-head", "queries", "estimator", "samples"}

// usualEpsilons contains the default radii: the l2 norm sums over all pixels and needs larger radii than linf.
var usualEpsilons = map[attack.Norm][]float64{attack.LInf: {0.01, 0.03, 0.1}, attack.L2: {0.25, 0.75, 2.5}}

func (f *attackCommand) Help() Help {
	return Help{
		Long: "Measure how well a run reconstructs adversarial examples. These are test images with a small perturbation along the\n" +
			"gradient of the run's reconstruction error. The error compares the reconstruction with the clean image.\n\n" +
			"With --on HEAD, measure how well a classifier predicts the classes of adversarial examples: its robust accuracy. A run that has no decoder " +
			"and one such head is attacked there without --on.",
		Examples: []string{"tessera attack runs/shallow", "tessera attack runs/shallow --norm linf --epsilon 0.05,0.1 --method pgd --steps 40",
			"tessera attack runs/classifier --on class --norm linf --epsilon 0.1,0.2,0.3 --method pgd --steps 40 --restarts 10"},
	}
}

func (f *attackCommand) Do(cmd *Call) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	r, err := tessera.Open(f.Folder, options)
	if err != nil {
		return err
	}
	defer r.Close()
	if heads := r.ClassHeads(); f.On == "" && len(heads) == 1 && !decodes(r) { // there is nothing else to attack
		f.On = heads[0]
	}
	if f.On != "" {
		return f.attackHead(cmd, r, options)
	}
	for _, flag := range ofHeads {
		if cmd.Given(flag) {
			return usagef("--%s: only attacks on heads have it; add --on HEAD", flag)
		}
	}
	attacks, err := f.attacks(cmd)
	if err != nil {
		return err
	}
	if !decodes(r) {
		if heads := r.ClassHeads(); len(heads) > 0 {
			return usagef("%s has no decoder, so no reconstructions; attack its predictions by --on %s", r.Path, heads[0])
		}
		return usagef("attack measures reconstructions: %s has no decoder", r.Path)
	}
	report, err := runs.Measure(cmd.Context(), r, attacks, f.Limit)
	if err != nil {
		return flagError(err)
	}
	if f.JSON {
		return printJSON(cmd.OutOrStdout(), report)
	}
	return printAttacks(cmd.OutOrStdout(), report)
}

// trials checks the flags and lists the attacks on a head.
func (f *attackCommand) trials(cmd *Call) (list []attack.Trial, err error) {
	gradients, black := *f, *f
	gradients.Methods, black.Methods = nil, nil
	for _, m := range f.Methods {
		if slices.Contains(attack.PGD.Choices(), string(m)) {
			gradients.Methods = append(gradients.Methods, m)
		} else {
			black.Methods = append(black.Methods, m)
		}
	}
	for _, flag := range []string{"queries", "estimator", "samples"} {
		if cmd.Given(flag) && len(black.Methods) == 0 {
			return nil, usagef("--%s: only square, score and decision have it; add --method %s", flag, attack.Square)
		}
	}
	var attacks []attack.Attack
	if len(gradients.Methods) > 0 || len(black.Methods) == 0 {
		if attacks, err = gradients.attacks(cmd); err != nil {
			return nil, err
		}
	}
	for _, a := range attacks {
		for _, objective := range f.Objectives {
			pgd := a.Method == attack.PGD
			list = append(list, attack.Trial{Attack: a, Objective: attack.Objective(objective), RandomStart: f.RandomStart && pgd, Early: f.Early && pgd})
		}
	}
	for _, a := range black.each() {
		t := attack.Trial{Attack: a, Queries: f.Queries}
		t.Seed = f.Seed
		if t.Method == attack.Score {
			t.Estimator, t.Samples, t.Objective = f.Estimator, f.Samples, attack.Objective(f.Objectives[0])
		}
		list = append(list, t)
	}
	for i := range list {
		if err := list[i].Check(); err != nil {
			return nil, flagError(err)
		}
	}
	return list, nil
}

// each lists the methods in each norm with each epsilon.
func (f *attackCommand) each() (list []attack.Attack) {
	for _, norm := range f.Norms {
		epsilons := f.Epsilons
		if len(epsilons) == 0 {
			epsilons = usualEpsilons[norm]
		}
		for _, epsilon := range epsilons {
			for _, method := range f.Methods {
				list = append(list, attack.Attack{Method: attack.Method(method), Norm: norm, Epsilon: epsilon})
			}
		}
	}
	return list
}

// attacks checks the flags and lists the attacks by gradients.
func (f *attackCommand) attacks(cmd *Call) ([]attack.Attack, error) {
	list := f.each()
	for i := range list {
		a := &list[i]
		a.Steps, a.StepSize = f.Steps, f.StepSize
		if a.Method == attack.PGD {
			a.Restarts, a.Seed = f.Restarts, f.Seed
		}
		if err := a.Check(); err != nil {
			return nil, flagError(err)
		}
	}
	for _, flag := range []string{"steps", "step-size", "restarts", "seed"} {
		if cmd.Given(flag) && !slices.Contains(f.Methods, attackMethod(attack.PGD)) {
			return nil, usagef("--%s: %s takes one step from the clean image; leave it out, or add --method %s", flag, attack.FGSM, attack.PGD)
		}
	}
	return list, nil
}

// decodes reports whether a run reconstructs images.
func decodes(r *tessera.Run) bool { return slices.Contains(r.Values(), losses.Output) }

// printAttacks prints the clean error and a row for every attack.
func printAttacks(out io.Writer, r *attack.Report) error {
	t := newTable(out)
	t.row("norm", "epsilon", "method", "steps", "mse", "times clean", "code change")
	t.row("clean", "", "", "", r.MSE, "1.0", "0.000")
	for _, a := range r.Attacks {
		t.row(a.Norm, a.Epsilon, a.Method, a.Steps, a.MSE, fmt.Sprintf("%.1f", a.MSE/r.MSE), fmt.Sprintf("%.3f", a.CodeChange))
	}
	return t.flush()
}

// attackHead measures attacks on a head of a run.
func (f *attackCommand) attackHead(cmd *Call, r *tessera.Run, options tessera.Options) error {
	trials, err := f.trials(cmd)
	if err != nil {
		return err
	}
	if heads := r.ClassHeads(); !slices.Contains(heads, f.On) {
		return usagef("--on: got %q, want a head that a loss of %s compares with labels: one of %q", f.On, r.Path, heads)
	}
	a := runs.HeadAttack{Head: f.On, Trials: trials, Limit: f.Limit, FromHead: f.FromHead}
	if f.From != "" {
		if a.From, err = tessera.Open(f.From, options); err != nil {
			return err
		}
		defer a.From.Close()
		if heads := a.From.ClassHeads(); len(heads) > 0 && !slices.Contains(heads, f.FromHead) && (f.FromHead != "" || len(heads) > 1 && !slices.Contains(heads, f.On)) {
			return usagef("--from-head: got %q, want a head of %s: one of %q", f.FromHead, f.From, heads)
		}
	}
	j, err := runs.Judge(cmd.Context(), r, a)
	if errors.Is(err, tessera.ErrNoClasses) { // of the other run
		return usagef("--from: %s", err)
	}
	if err != nil {
		return flagError(err)
	}
	if f.JSON {
		return printJSON(cmd.OutOrStdout(), j)
	}
	return printJudgement(cmd.OutOrStdout(), j)
}

// printJudgement prints the clean accuracy and a row for every attack.
func printJudgement(out io.Writer, j *attack.Judgement) error {
	t := newTable(out)
	t.row("norm", "epsilon", "method", "by", "steps", "queries", "accuracy", "95 % interval", "risk")
	row := func(norm, epsilon, method, by, steps, queries any, a attack.Accuracy, risk float64) {
		t.row(norm, epsilon, method, by, steps, queries, fmt.Sprintf("%.4f", a.Value), fmt.Sprintf("%.4f to %.4f", a.Low, a.High), fmt.Sprintf("%.4f", risk))
	}
	some := func(n int) any {
		if n == 0 {
			return ""
		}
		return n
	}
	row("clean", "", "", "", "", "", j.Accuracy, j.Risk)
	for _, a := range j.Trials {
		by := string(a.Objective)
		if a.Estimator != "" {
			by += " " + string(a.Estimator)
		}
		row(a.Norm, a.Epsilon, a.Method, by, some(a.Steps), some(a.Queries), a.Accuracy, a.Risk)
	}
	if err := t.flush(); err != nil {
		return err
	}
	var notes []string
	for _, a := range j.Trials {
		if len(a.Curve) == 0 {
			continue
		}
		text := fmt.Sprintf("%s %s %g, accuracy after queries:", a.Method, a.Norm, a.Epsilon)
		for _, p := range a.Curve {
			text += fmt.Sprintf("  %d: %.4f", p.Queries, p.Accuracy)
		}
		notes = append(notes, text)
	}
	if j.From != "" {
		notes = append(notes, "examples computed on "+j.From)
	}
	for _, m := range j.Masked {
		notes = append(notes, "warning: "+m)
	}
	if len(notes) == 0 {
		return nil
	}
	_, err := fmt.Fprintln(out, strings.Join(notes, "\n"))
	return err
}
