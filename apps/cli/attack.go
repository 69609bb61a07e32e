package cli

import (
	"errors"
	"slices"
	"strings"

	"tessera"
	"tessera/apps/show"
	"tessera/attack"
	"tessera/attack/runs"
	"tessera/config/part/table"
	"tessera/internal/lists"
	"tessera/losses"
)

var (
	_ Command  = (*attackCommand)(nil)
	_ extended = (*attackCommand)(nil)
)

func init() {
	Commands.Register("attack", "Measure a run on adversarial examples", func() Command {
		return &attackCommand{runFlags: forRuns(), Attacks: []attack.Name{"fgsm", "pgd"}, Norms: []attack.Norm{attack.LInf, attack.L2}, Seed: 1,
			Objectives: []attackObjective{attackObjective(attack.CrossEntropy)}, keys: keysOfAll(attack.Registry)}
	})
}

type attackObjective string

func (attackObjective) Choices() []string {
	return []string{string(attack.CrossEntropy), string(attack.Margin)}
}

// attackCommand is the command attack. Its flags select the trials: each attack in each norm with each epsilon. The keys of the attacks are flags too.
type attackCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	jsonFlag
	Attacks  []attack.Name `flag:"attack" also:"method" doc:"attacks that compute the adversarial examples, see tessera list attacks; those that know no gradients are attacks on a head"`
	Sets     []string      `flag:"set" each:"true" doc:"set a key of the attacks, as in steps=40 (KEY=VALUE); may be repeated"`
	Norms    []attack.Norm `flag:"norm" doc:"norms of the perturbation"`
	Epsilons []float64     `flag:"epsilon" want:"> 0" doc:"largest norm of the perturbation, for pixels in [0,1]" default:"0.01,0.03,0.1 for linf; 0.25,0.75,2.5 for l2"`
	Seed     uint64        `flag:"seed" doc:"seed of the random numbers of attacks"`
	Limit    int           `flag:"limit" want:">= 0" doc:"number of images to attack, from the first; 0 attacks all"`

	On         string            `flag:"on" doc:"head whose predictions are attacked: class; without it reconstructions are, or the only head of a run without a decoder"`
	Objectives []attackObjective `flag:"objective" doc:"what attacks on a head maximise; margin is the largest other logit minus that of the class"`
	From       string            `flag:"from" is:"folder" doc:"run that the adversarial examples of a head are computed on; they are measured on RUN"`
	FromHead   string            `flag:"from-head" needs:"from" doc:"head of the run --from that the examples are computed on" default:"the head with the name --on, or the only head"`

	keys []table.Field // of all attacks
}

// ofHeads lists the flags that apply only to attacks on heads.
var ofHeads = []string{"objective", "from", "from-head"}

// usualEpsilons contains the default radii: the l2 norm sums over all pixels and needs larger radii than linf.
var usualEpsilons = map[attack.Norm][]float64{attack.LInf: {0.01, 0.03, 0.1}, attack.L2: {0.25, 0.75, 2.5}}

func (f *attackCommand) Help() Help {
	return Help{
		Long: "Measure how well a run reconstructs adversarial examples. These are test images with a small perturbation along the\n" +
			"gradient of the run's reconstruction error. The error compares the reconstruction with the clean image.\n\n" +
			"With --on HEAD, measure how well a classifier predicts the classes of adversarial examples: its robust accuracy. A run that has no decoder " +
			"and one such head is attacked there without --on.",
		Examples: []string{"tessera attack runs/shallow", "tessera attack runs/shallow --norm linf --epsilon 0.05,0.1 --attack pgd --set steps=40",
			"tessera attack runs/classifier --on class --norm linf --epsilon 0.1,0.2,0.3 --attack pgd --steps 40 --restarts 10"},
	}
}

func (f *attackCommand) More() []table.Field { return f.keys }

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
	decodes := decodes(r)
	heads := r.ClassHeads()
	if f.On == "" && len(heads) == 1 && !decodes { // there is nothing else to attack
		f.On = heads[0]
	}
	trials, err := f.trials(cmd)
	if err != nil {
		return err
	}
	if f.On != "" {
		return f.attackHead(cmd, r, options, trials)
	}
	for _, flag := range ofHeads {
		if cmd.Given(flag) {
			return usagef("--%s: only attacks on heads have it; add --on HEAD", flag)
		}
	}
	if !decodes {
		if len(heads) > 0 {
			return usagef("%s has no decoder, so no reconstructions; attack its predictions by --on %s", r.Path, heads[0])
		}
		return usagef("attack measures reconstructions: %s has no decoder", r.Path)
	}
	report, err := runs.Measure(cmd.Context(), r, trials, f.Limit)
	if err != nil {
		return flagError(err)
	}
	return cmd.Show(show.Attacked(report), f.JSON)
}

// trials checks the flags and lists the trials: each attack in each norm with each epsilon, and by each objective if it uses gradients.
func (f *attackCommand) trials(cmd *Call) (list []attack.Trial, err error) {
	settings, err := f.settings(cmd)
	if err != nil {
		return nil, err
	}
	for _, norm := range f.Norms {
		epsilons := f.Epsilons
		if len(epsilons) == 0 {
			epsilons = usualEpsilons[norm]
		}
		for _, epsilon := range epsilons {
			for _, name := range f.Attacks {
				objectives := f.Objectives
				e, _ := attack.Registry.Lookup(string(name))
				a := e.New()
				if _, ok := a.(attack.BlackBox); ok || f.On == "" {
					objectives = objectives[:1]
				}
				for _, s := range settings {
					if err := s.apply(a); err != nil {
						return nil, err
					}
				}
				for _, objective := range objectives {
					t := attack.Trial{Attack: a, Ball: attack.Ball{Norm: norm, Epsilon: epsilon}, Objective: attack.Objective(objective), Seed: f.Seed}
					if err := t.Check(); err != nil {
						return nil, flagError(err)
					}
					list = append(list, t)
				}
			}
		}
	}
	return list, nil
}

// keySetting is the value of a key of parts that a command chooses, and the flag that gave it.
type keySetting struct{ key, value, flag string }

func (s keySetting) apply(part any) error {
	for _, f := range table.Fields(part) {
		if f.Key == s.key {
			if err := f.SetText(s.value); err != nil {
				return usagef("--%s: %w", s.flag, err)
			}
		}
	}
	return nil
}

// settings returns what --set and the flags of keys give. A key that none of the attacks has is an error.
func (f *attackCommand) settings(cmd *Call) (list []keySetting, err error) {
	for _, k := range f.keys {
		if cmd.Given(flagName(k)) {
			list = append(list, keySetting{k.Key, strings.Join(texts(k), ","), flagName(k)})
		}
	}
	for _, text := range f.Sets {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usagef("--set: got %q, want KEY=VALUE", text)
		}
		list = append(list, keySetting{key, value, "set " + key})
	}
	for _, s := range list {
		var names []string
		for _, e := range attack.Registry.All() {
			if slices.ContainsFunc(table.Fields(e.New()), func(f table.Field) bool { return f.Key == s.key }) {
				names = append(names, e.Name)
			}
		}
		switch {
		case len(names) == 0:
			keys := lists.Map(f.keys, func(k table.Field) string { return k.Key })
			return nil, usagef("--set: unknown key %q: %s", s.key, table.Suggest(s.key, keys))
		case !slices.ContainsFunc(f.Attacks, func(a attack.Name) bool { return slices.Contains(names, string(a)) }):
			return nil, usagef("--%s: only %s has it; leave it out, or add --attack %s", s.flag, strings.Join(names, ", "), names[0])
		}
	}
	return list, nil
}

func decodes(r *tessera.Run) bool { return slices.Contains(r.Values(), losses.Output) }

// attackHead measures attacks on a head of a run.
func (f *attackCommand) attackHead(cmd *Call, r *tessera.Run, options tessera.Options, trials []attack.Trial) (err error) {
	if heads := r.ClassHeads(); !slices.Contains(heads, f.On) {
		return usagef("--on: got %q, want a head that a loss of %s compares with labels: one of %s", f.On, r.Path, table.Quoted(heads))
	}
	a := runs.HeadAttack{Head: f.On, Trials: trials, Limit: f.Limit, FromHead: f.FromHead}
	if f.From != "" {
		if a.From, err = tessera.Open(f.From, options); err != nil {
			return err
		}
		defer a.From.Close()
		if heads := a.From.ClassHeads(); len(heads) > 0 && !slices.Contains(heads, f.FromHead) && (f.FromHead != "" || len(heads) > 1 && !slices.Contains(heads, f.On)) {
			return usagef("--from-head: got %q, want a head of %s: one of %s", f.FromHead, f.From, table.Quoted(heads))
		}
	}
	j, err := runs.Judge(cmd.Context(), r, a)
	if errors.Is(err, tessera.ErrNoClasses) { // of the other run
		return usagef("--from: %s", err)
	}
	if err != nil {
		return flagError(err)
	}
	return cmd.Show(show.Judged(j), f.JSON)
}
