package train

import (
	"encoding/json"
	"fmt"
	"hash/fnv"

	"tessera/baselines"
	"tessera/config"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/machine"
	"tessera/optim"
	"tessera/part"
)

// together checks that the processes of a group can train a model.
func (o Options) together(spec *config.Model) error {
	if o.Group == nil {
		if o.ShardOptimizer {
			return fmt.Errorf("model %q: --shard-optimizer divides the state of the optimizer among processes: train with --distributed", spec.Name)
		}
		return nil
	}
	refuse := func(key, problem string, a ...any) error {
		return fmt.Errorf("model %q: distributed training: %w", spec.Name, part.KeyErrorf(key, problem, a...))
	}
	if _, ok := spec.Baseline.(baselines.Method); ok {
		return refuse("kind", "a baseline (%s) is fitted by one process; train without --distributed", spec.Kind)
	}
	if _, ok := spec.Optimizer.Optimizer.(optim.Search); ok {
		return refuse("optimizer", "a full-batch optimizer (%s) is not supported; take one with mini-batches, or train without --distributed", spec.Optimizer.Kind)
	}
	if _, err := o.Backend.WithGroup(o.Group); err != nil {
		return refuse("backend", "only the engine sums over processes; train with --backend engine")
	}
	for _, declared := range spec.AllHooks() {
		of, ok := declared.Hook.(hooks.Replicated)
		if !ok {
			return refuse("hook", "%s reads the images of a batch, of which each process has a part; remove the hook, or train without --distributed", declared.Name)
		}
		if o.ShardOptimizer && of.Replicated() {
			return refuse("hook", "%s changes the state of the optimizer, of which each process has a part; remove the hook, or train without --shard-optimizer", declared.Name)
		}
	}
	return nil
}

// declared returns the model that rank 0 trains: another process gives the same one, or none.
func (o Options) declared(spec *config.Model) (*config.Model, error) {
	p := o.processes()
	if p.group == nil {
		return spec, nil
	}
	var mine []byte
	if spec != nil {
		mine = config.Fill(spec)
	}
	text, err := p.share(mine)
	if err != nil {
		return nil, err
	}
	if spec == nil && !p.leads() {
		mine = text
		if spec, err = parseConfig("config.toml of rank 0", text); err != nil {
			return nil, err
		}
	}
	return spec, p.same("models", mine)
}

// Different is the error of processes that were not started alike.
type Different struct {
	What  string // "models", "versions", ...
	Ranks []int  // that differ from rank 0
}

// Error implements error.
func (e *Different) Error() string {
	return fmt.Sprintf("distributed training: rank %s and rank 0 have different %s; start all processes with the same command, version and kind of processor (TESSERA_SIMD restricts the kernels)",
		listed(e.Ranks), e.What)
}

// same returns a [*Different] unless all processes have the same text.
func (p *processes) same(what string, text []byte) error {
	others, err := p.compared(text)
	if err != nil || len(others) == 0 {
		return err
	}
	return &Different{What: what, Ranks: others}
}

// compared lists the processes whose text differs from that of rank 0.
func (p *processes) compared(text []byte) (others []int, err error) {
	h := fnv.New64a()
	_, _ = h.Write(text)
	all, err := p.hashes(h.Sum64())
	for rank, v := range all {
		if v != all[0] {
			others = append(others, rank)
		}
	}
	return others, err
}

// agree compares the versions, the options, the arithmetic and the data of all processes.
func (s *session) agree() error {
	p := s.processes
	if p.group == nil {
		return nil
	}
	if err := p.wait(); err != nil { // a process may read its data longer than the others
		return err
	}
	for _, one := range []struct {
		what  string
		value any
	}{
		{"versions", machine.Version()},
		{"threads, back ends or kernels", s.arithmetic},
		{"options (division of the optimizer, check of the weights)", [2]any{s.options.ShardOptimizer, p.check}},
	} {
		text, err := json.Marshal(one.value)
		if err == nil {
			err = p.same(one.what, text)
		}
		if err != nil {
			return err
		}
	}
	text, err := json.Marshal(s.identity)
	if err != nil {
		return err
	}
	others, err := p.compared(text)
	if err == nil && len(others) > 0 {
		err = &data.Error{Dataset: s.spec.Dataset.Name, Problem: fmt.Sprintf("the images of rank %s differ from those of rank 0 (number or SHA-256 of the files)", listed(others)),
			Hint: "every process reads the data set itself: give all machines the same files"}
	}
	return err
}
