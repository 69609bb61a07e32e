package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"tessera"
	"tessera/attack"
	"tessera/config/part"
	"tessera/losses"
)

// usualEpsilons contains the default radii: the l2 norm sums over all pixels and needs larger radii than linf.
var usualEpsilons = map[attack.Norm][]float64{attack.LInf: {0.01, 0.03, 0.1}, attack.L2: {0.25, 0.75, 2.5}}

// attackFlags contains the flags that select the attacks: each method in each norm with each epsilon.
type attackFlags struct {
	methods, norms []string
	epsilons       []float64
	steps          int
	stepSize       float64
	restarts       int
	seed           uint64
	limit          int

	on          string // the attacked head; "" attacks reconstructions
	objectives  []string
	randomStart bool
	early       bool
	queries     int
	estimator   string
	samples     int
	from        string
	fromHead    string
}

// ofHeads lists the flags that apply only to attacks on heads.
var ofHeads = []string{"objective", "random-start", "stop-early", "from", "from-head", "queries", "estimator", "samples"}

func (f *attackFlags) add(cmd *cobra.Command) {
	usual := attack.Default()
	methods, norms := usual.Method.Choices(), usual.Norm.Choices()
	cmd.Flags().StringSliceVar(&f.methods, "method", methods, "attacks that compute the adversarial examples; on a head also square, score and decision, which know no gradients")
	cmd.Flags().StringSliceVar(&f.norms, "norm", norms, "norms of the perturbation")
	cmd.Flags().Float64SliceVar(&f.epsilons, "epsilon", nil, "largest norm of the perturbation, for pixels in [0,1] (default 0.01,0.03,0.1 for linf; 0.25,0.75,2.5 for l2)")
	cmd.Flags().Lookup("epsilon").DefValue = "" // the usage names it
	f.steps = usual.Steps
	cmd.Flags().Var((*positive)(&f.steps), "steps", "number of steps of pgd")
	cmd.Flags().Float64Var(&f.stepSize, "step-size", 0, "step size of pgd, in the norm (default 2.5 epsilon / steps)")
	cmd.Flags().IntVar(&f.restarts, "restarts", 0, "further starts of pgd from random points of the ball; each image keeps its worst example")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of these points")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "number of images to attack, from the first; 0 attacks all")
	cmd.Flags().StringVar(&f.on, "on", "", "head whose predictions are attacked: class; without it reconstructions are")
	objectives := []string{string(attack.CrossEntropy), string(attack.Margin)}
	cmd.Flags().StringSliceVar(&f.objectives, "objective", objectives[:1], "what attacks on a head maximise: cross_entropy, or margin, the largest other logit minus that of the class")
	cmd.Flags().BoolVar(&f.randomStart, "random-start", false, "on a head, the first start of pgd is a random point of the ball too")
	cmd.Flags().IntVar(&f.queries, "queries", 1000, "number of queries of square, score and decision for one image of a head")
	cmd.Flags().StringVar(&f.estimator, "estimator", string(attack.NES), "how score estimates gradients: coordinates, nes or spsa")
	cmd.Flags().IntVar(&f.samples, "samples", 20, "number of directions of one estimate of nes and spsa")
	_ = cmd.RegisterFlagCompletionFunc("estimator", cobra.FixedCompletions(attack.Estimator("").Choices(), cobra.ShellCompDirectiveNoFileComp))
	cmd.Flags().BoolVar(&f.early, "stop-early", false, "on a head, pgd leaves an image at its first misclassification: faster, with smaller risks")
	cmd.Flags().StringVar(&f.from, "from", "", "run that the adversarial examples of a head are computed on; they are measured on RUN")
	cmd.Flags().StringVar(&f.fromHead, "from-head", "", "head of the run --from that the examples are computed on (default the head with the name --on, or the only head)")
	_ = cmd.RegisterFlagCompletionFunc("objective", cobra.FixedCompletions(objectives, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(methods, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("norm", cobra.FixedCompletions(norms, cobra.ShellCompDirectiveNoFileComp))
}

// trials checks the flags and lists the attacks on a head.
func (f *attackFlags) trials(cmd *cobra.Command) (list []attack.Trial, err error) {
	gradients, black := *f, *f
	gradients.methods, black.methods = nil, nil
	for _, m := range f.methods {
		if slices.Contains([]string{string(attack.Square), string(attack.Score), string(attack.Decision)}, m) {
			black.methods = append(black.methods, m)
		} else {
			gradients.methods = append(gradients.methods, m)
		}
	}
	for _, flag := range []string{"queries", "estimator", "samples"} {
		if cmd.Flags().Changed(flag) && len(black.methods) == 0 {
			return nil, usagef("--%s: only square, score and decision have it; add --method %s", flag, attack.Square)
		}
	}
	var attacks []attack.Attack
	if len(gradients.methods) > 0 || len(black.methods) == 0 {
		if attacks, err = gradients.attacks(cmd); err != nil {
			return nil, err
		}
	}
	for _, a := range attacks {
		for _, objective := range f.objectives {
			pgd := a.Method == attack.PGD
			list = append(list, attack.Trial{Attack: a, Objective: attack.Objective(objective), RandomStart: f.randomStart && pgd, Early: f.early && pgd})
		}
	}
	list = append(list, black.blackBoxes()...)
	for i := range list {
		if err := list[i].Check(); err != nil {
			return nil, usagef("--%s", strings.NewReplacer("step_size", "step-size", "random_start", "random-start").Replace(err.Error()))
		}
	}
	return list, nil
}

// blackBoxes lists the attacks without gradients: each method in each norm with each epsilon.
func (f *attackFlags) blackBoxes() (list []attack.Trial) {
	for _, norm := range f.norms {
		epsilons := f.epsilons
		if len(epsilons) == 0 {
			epsilons = usualEpsilons[attack.Norm(norm)]
		}
		for _, epsilon := range epsilons {
			for _, method := range f.methods {
				t := attack.Trial{Attack: attack.Attack{Method: attack.Method(method), Norm: attack.Norm(norm), Epsilon: epsilon, Seed: f.seed}, Queries: f.queries}
				if t.Method == attack.Score {
					t.Estimator, t.Samples, t.Objective = attack.Estimator(f.estimator), f.samples, attack.Objective(f.objectives[0])
				}
				list = append(list, t)
			}
		}
	}
	return list
}

// attacks checks the flags and lists the attacks.
func (f *attackFlags) attacks(cmd *cobra.Command) (list []attack.Attack, err error) {
	if f.limit < 0 {
		return nil, usagef("--limit: got %d, want >= 0", f.limit)
	}
	for _, norm := range f.norms {
		epsilons := f.epsilons
		if usual, known := usualEpsilons[attack.Norm(norm)]; len(epsilons) == 0 && known {
			epsilons = usual
		} else if !known {
			return nil, usagef("--norm: got %q, want one of %s", norm, strings.Join(attack.L2.Choices(), ", "))
		}
		for _, epsilon := range epsilons {
			for _, method := range f.methods {
				a := attack.Attack{Method: attack.Method(method), Norm: attack.Norm(norm), Epsilon: epsilon, Steps: f.steps, StepSize: f.stepSize}
				if a.Method == attack.PGD {
					a.Restarts, a.Seed = f.restarts, f.seed
				}
				if err := a.Check(); err != nil {
					return nil, usagef("--%s", strings.Replace(err.Error(), "step_size", "step-size", 1))
				}
				list = append(list, a)
			}
		}
	}
	for _, flag := range []string{"steps", "step-size", "restarts", "seed"} {
		if cmd.Flags().Changed(flag) && !slices.Contains(f.methods, string(attack.PGD)) {
			return nil, usagef("--%s: %s takes one step from the clean image; leave it out, or add --method %s", flag, attack.FGSM, attack.PGD)
		}
	}
	if len(list) == 0 {
		return nil, usagef("--method, --norm: want at least one of each")
	}
	return list, nil
}

func attackCommand() *cobra.Command {
	var f runFlags
	var which attackFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "attack RUN",
		Short: "Measure a run on adversarial examples",
		Long: "Measure how well a run reconstructs adversarial examples. These are test images with a small perturbation along the\n" +
			"gradient of the run's reconstruction error. The error compares the reconstruction with the clean image.\n\n" +
			"With --on HEAD, measure how well a classifier predicts the classes of adversarial examples: its robust accuracy.",
		Example: "  tessera attack runs/shallow\n  tessera attack runs/shallow --norm linf --epsilon 0.05,0.1 --method pgd --steps 40\n" +
			"  tessera attack runs/classifier --on class --norm linf --epsilon 0.1,0.2,0.3 --method pgd --steps 40 --restarts 10",
		RunE: work(func(cmd *cobra.Command, args []string) error {
			options, err := f.options()
			if err != nil {
				return err
			}
			if which.on != "" {
				return which.attackHead(cmd, args[0], options, asJSON)
			}
			for _, flag := range ofHeads {
				if cmd.Flags().Changed(flag) {
					return usagef("--%s: only attacks on heads have it; add --on HEAD", flag)
				}
			}
			attacks, err := which.attacks(cmd)
			if err != nil {
				return err
			}
			r, err := tessera.Open(args[0], options)
			if err != nil {
				return err
			}
			defer r.Close()
			if !decodes(r) {
				if heads := r.ClassHeads(); len(heads) > 0 {
					return usagef("%s has no decoder, so no reconstructions; attack its predictions by --on %s", r.Path, heads[0])
				}
				return usagef("attack measures reconstructions: %s has no decoder", r.Path)
			}
			report, err := r.Attack(cmd.Context(), attacks, which.limit)
			var setting part.KeyError
			if errors.As(err, &setting) {
				err = usagef("--%s", setting)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), report)
			}
			return printAttacks(cmd.OutOrStdout(), report)
		}),
	}
	aRun(cmd)
	f.add(cmd)
	which.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
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
func (f *attackFlags) attackHead(cmd *cobra.Command, path string, options tessera.Options, asJSON bool) error {
	trials, err := f.trials(cmd)
	if err != nil {
		return err
	}
	r, err := tessera.Open(path, options)
	if err != nil {
		return err
	}
	defer r.Close()
	if heads := r.ClassHeads(); !slices.Contains(heads, f.on) {
		return usagef("--on: got %q, want a head that a loss of %s compares with labels: one of %q", f.on, path, heads)
	}
	a := tessera.HeadAttack{Head: f.on, Trials: trials, Limit: f.limit, FromHead: f.fromHead}
	if f.fromHead != "" && f.from == "" {
		return usagef("--from-head: got %q without a run; add --from RUN", f.fromHead)
	}
	if f.from != "" {
		if a.From, err = tessera.Open(f.from, options); err != nil {
			return err
		}
		defer a.From.Close()
		if heads := a.From.ClassHeads(); len(heads) > 0 && !slices.Contains(heads, f.fromHead) && (f.fromHead != "" || len(heads) > 1 && !slices.Contains(heads, f.on)) {
			return usagef("--from-head: got %q, want a head of %s: one of %q", f.fromHead, f.from, heads)
		}
	}
	j, err := r.AttackHead(cmd.Context(), a)
	if errors.Is(err, tessera.ErrNoClasses) { // of the other run
		return usagef("--from: %s", err)
	}
	if setting, ok := errors.AsType[part.KeyError](err); ok {
		return usagef("--%s", setting)
	}
	if err != nil {
		return err
	}
	if asJSON {
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
