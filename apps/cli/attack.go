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
	"tessera/losses"
	"tessera/part"
)

// usualEpsilons are the default radii: the l2 norm sums over all pixels and needs larger radii than linf.
var usualEpsilons = map[attack.Norm][]float64{attack.LInf: {0.01, 0.03, 0.1}, attack.L2: {0.25, 0.75, 2.5}}

// attackFlags select the attacks: each method in each norm with each epsilon.
type attackFlags struct {
	methods, norms []string
	epsilons       []float64
	steps          int
	stepSize       float64
	restarts       int
	seed           uint64
	limit          int
}

func (f *attackFlags) add(cmd *cobra.Command) {
	usual := attack.Default()
	methods, norms := usual.Method.Choices(), usual.Norm.Choices()
	cmd.Flags().StringSliceVar(&f.methods, "method", methods, "attacks that compute the adversarial examples")
	cmd.Flags().StringSliceVar(&f.norms, "norm", norms, "norms of the perturbation")
	cmd.Flags().Float64SliceVar(&f.epsilons, "epsilon", nil, "largest norm of the perturbation, for pixels in [0,1] (default 0.01,0.03,0.1 for linf; 0.25,0.75,2.5 for l2)")
	cmd.Flags().Lookup("epsilon").DefValue = "" // the usage names it
	f.steps = usual.Steps
	cmd.Flags().Var((*positive)(&f.steps), "steps", "number of steps of pgd")
	cmd.Flags().Float64Var(&f.stepSize, "step-size", 0, "step size of pgd, in the norm (default 2.5 epsilon / steps)")
	cmd.Flags().IntVar(&f.restarts, "restarts", 0, "further starts of pgd from random points of the ball; each image keeps its worst example")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of these points")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "number of images to attack, from the first; 0 attacks all")
	_ = cmd.RegisterFlagCompletionFunc("method", cobra.FixedCompletions(methods, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("norm", cobra.FixedCompletions(norms, cobra.ShellCompDirectiveNoFileComp))
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
			"gradient of the run's reconstruction error. The error compares the reconstruction with the clean image.",
		Example: "  tessera attack runs/shallow\n  tessera attack runs/shallow --norm linf --epsilon 0.05,0.1 --method pgd --steps 40",
		RunE: work(func(cmd *cobra.Command, args []string) error {
			options, err := f.options()
			if err != nil {
				return err
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
