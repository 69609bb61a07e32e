package train

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"tessera/config"
	"tessera/config/part"
	"tessera/data"
	"tessera/hooks"
	"tessera/internal/machine"
	"tessera/internal/parallel/collective"
	"tessera/internal/regular"
	"tessera/internal/train/folder"
	"tessera/metrics"
	"tessera/optim"
)

// DefaultCheckWeights is the number of steps between two comparisons of the weights of all processes.
const DefaultCheckWeights = 100

// Unequal is the error for processes whose weights differ. Weights are equal by construction: a processor or memory has made
// an error, or a user-defined part depends on more than its arguments.
type Unequal struct {
	Ranks []int // ranks of the processes whose weights differ from those of most processes
	Step  int
}

func (e *Unequal) Error() string {
	return fmt.Sprintf("step %d: the weights of rank %s differ from those of the other processes; the last checkpoint is kept: check the machine of that rank, then resume",
		e.Step, listed(e.Ranks))
}

func listed(ranks []int) string {
	text := ""
	for i, r := range ranks {
		if i > 0 {
			text += " and "
		}
		text += fmt.Sprint(r)
	}
	return text
}

// processes is the group of processes that train one run together. The zero value is a single process, for which no method
// communicates.
type processes struct {
	group collective.Group // the group; nil for a single process
	check int              // steps between two comparisons of the weights; < 1: never

	flag, asked        [1]uint64
	flagValues, asking any    // flag and asked as interfaces, stored because conversions allocate
	halt               uint64 // reason for stopping
	pending            collective.Pending
}

func (o Options) processes() *processes {
	p := &processes{group: o.Group, check: o.CheckWeights}
	if p.check == 0 {
		p.check = DefaultCheckWeights
	}
	p.flagValues, p.asking = p.flag[:], p.asked[:]
	return p
}

// leads reports whether this process writes the files and reports progress.
func (p *processes) leads() bool { return p.group == nil || p.group.Rank() == 0 }

func (p *processes) size() int {
	if p.group == nil {
		return 1
	}
	return p.group.Size()
}

// any reports whether yes is true in one of the processes.
func (p *processes) any(yes bool) (bool, error) {
	if p.group == nil {
		return yes, nil
	}
	p.flag[0] = 0
	if yes {
		p.flag[0] = 1
	}
	err := p.group.AllReduce(collective.Max, p.flagValues)
	return p.flag[0] != 0, err
}

// launcher returns the command that starts this number of processes, "" for a single process.
func (p *processes) launcher() string {
	if p.group == nil {
		return ""
	}
	if known, ok := p.group.(interface{ Again() string }); ok {
		return known.Again()
	}
	return fmt.Sprintf("mpirun -n %d", p.size())
}

// ask starts to ask all processes whether their contexts are done; answer waits for the result. In the meantime the processes
// compute a step.
func (p *processes) ask(ctx context.Context) (err error) {
	if p.group == nil {
		return nil
	}
	p.asked[0] = reason(ctx)
	p.pending, err = p.group.Start(collective.Max, p.asking)
	return err
}

// answer reports whether the context of any process was done when ask was called.
func (p *processes) answer(ctx context.Context) (bool, error) {
	if p.group == nil {
		return ctx.Err() != nil, nil
	}
	if p.pending == nil { // no step yet
		return false, nil
	}
	err := p.pending.Wait()
	p.pending = nil
	p.halt = p.asked[0]
	return p.halt != running, err
}

// wait waits for all processes, including one that writes a checkpoint.
func (p *processes) wait() error {
	if p.group == nil {
		return nil
	}
	return p.group.Barrier()
}

// share sends a text from rank 0 to all processes.
func (p *processes) share(text []byte) ([]byte, error) {
	if p.group == nil {
		return text, nil
	}
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(text)))
	if err := p.group.Broadcast(0, length[:]); err != nil {
		return nil, err
	}
	if !p.leads() {
		text = make([]byte, binary.LittleEndian.Uint64(length[:]))
	}
	return text, p.group.Broadcast(0, text)
}

// shareValues sends measured numbers from rank 0 to all processes: processes on different processors may compute different
// last bits, but must make the same decisions.
func (p *processes) shareValues(values metrics.Values) error {
	if p.group == nil {
		return nil
	}
	bits := make([]byte, 8*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint64(bits[8*i:], math.Float64bits(v.Number))
	}
	if err := p.group.Broadcast(0, bits); err != nil {
		return err
	}
	for i := range values {
		values[i].Number = math.Float64frombits(binary.LittleEndian.Uint64(bits[8*i:]))
	}
	return nil
}

// shareWeights sends the parameters from rank 0 to all processes.
func (p *processes) shareWeights(list []*hooks.Parameter) error {
	if p.group == nil {
		return nil
	}
	for _, q := range list {
		bits := make([]byte, 4*len(q.Data))
		for i, v := range q.Data {
			binary.LittleEndian.PutUint32(bits[4*i:], math.Float32bits(v))
		}
		if err := p.group.Broadcast(0, bits); err != nil {
			return err
		}
		for i := range q.Data {
			q.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(bits[4*i:]))
		}
	}
	return nil
}

// hashes gathers a number from every process.
func (p *processes) hashes(mine uint64) ([]uint64, error) {
	counts := slices.Repeat([]int{1}, p.size())
	all := make([]uint64, p.size())
	return all, p.group.AllGather([]uint64{mine}, counts, all)
}

// due reports whether the weights have to be compared after a step.
func (p *processes) due(step int) bool { return p.group != nil && p.check > 0 && step%p.check == 0 }

// compareWeights returns an [*Unequal] if the weights of the processes differ.
func (p *processes) compareWeights(list []*hooks.Parameter, step int) error {
	if p.group == nil {
		return nil
	}
	h := uint64(fnvOffset)
	for _, q := range list {
		h = hashed(h, q.Data)
	}
	all, err := p.hashes(h)
	if err != nil {
		return err
	}
	if odd := outliers(all); len(odd) > 0 {
		return &Unequal{Ranks: odd, Step: step}
	}
	return nil
}

// outliers returns the indices of the values that differ from the most frequent value. If several values are equally frequent, the one that
// occurs first counts as the most frequent.
func outliers(values []uint64) (odd []int) {
	count := map[uint64]int{}
	for _, v := range values {
		count[v]++
	}
	usual := values[0]
	for _, v := range values {
		if count[v] > count[usual] {
			usual = v
		}
	}
	for i, v := range values {
		if v != usual {
			odd = append(odd, i)
		}
	}
	return odd
}

// Constants of the 64-bit FNV-1a hash, here applied to 32-bit words. Every step is a bijection: two arrays that differ in one
// value never have the same hash.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hashed(h uint64, values []float32) uint64 {
	for _, v := range values {
		h = (h ^ uint64(math.Float32bits(v))) * fnvPrime
	}
	return h
}

// together checks that the processes of a group can train a model together.
func (o Options) together(spec *config.Model) error {
	if o.Group == nil {
		if o.ShardOptimizer {
			return fmt.Errorf("model %q: the option shard_optimizer divides the state of the optimizer among processes: train with the option distributed", spec.Name)
		}
		return nil
	}
	refuse := func(key, problem string, a ...any) error {
		return fmt.Errorf("model %q: distributed training: %w", spec.Name, part.KeyErrorf(key, problem, a...))
	}
	if method := spec.Training().Method; method != "" {
		return refuse("kind", "a baseline (%s) is fitted by one process; train without the option distributed", method)
	}
	if _, ok := spec.Optimizer.Optimizer.(optim.Search); ok {
		return refuse("optimizer", "a full-batch optimizer (%s) is not supported; take one with mini-batches, or train without the option distributed", spec.Optimizer.Kind)
	}
	for _, p := range spec.AllPlayers() {
		if _, whole := p.Optimizer.Optimizer.(optim.Whole); whole && o.ShardOptimizer {
			return refuse("optimizer", "%s updates parameters as a whole, of which each process would have a part; train without the option shard_optimizer", p.Optimizer.Kind)
		}
	}
	if _, err := o.Backend.WithGroup(o.Group); err != nil {
		return refuse("backend", "only the engine sums over processes; train with the option backend=engine")
	}
	for _, declared := range spec.AllHooks() {
		of, ok := declared.Hook.(hooks.Replicated)
		if !ok {
			return refuse("hook", "%s reads the samples of a batch, of which each process has a part; remove the hook, or train without the option distributed", declared.Name)
		}
		if o.ShardOptimizer && of.Replicated() {
			return refuse("hook", "%s changes the state of the optimizer, of which each process has a part; remove the hook, or train without the option shard_optimizer", declared.Name)
		}
	}
	return nil
}

// declared returns the model that rank 0 trains. All other processes must have the same model, or none.
func (o Options) declared(spec *config.Model) (*config.Model, error) {
	p := o.processes()
	if p.group == nil {
		return spec, nil
	}
	var mine []byte
	if spec != nil {
		mine = spec.Text()
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

// Different is the error for processes that were started with different options, data or programs.
type Different struct {
	What  string // "models", "versions", ...
	Ranks []int  // ranks of the processes that differ from rank 0
}

func (e *Different) Error() string {
	return fmt.Sprintf("distributed training: rank %s and rank 0 have different %s; start all processes with the same command, version and kind of processor (TESSERA_SIMD restricts the kernels)",
		listed(e.Ranks), e.What)
}

// same returns a [*Different] if the processes have different texts; what names the texts.
func (p *processes) same(what string, text []byte) error {
	others, err := p.compared(text)
	if err != nil || len(others) == 0 {
		return err
	}
	return &Different{What: what, Ranks: others}
}

// compared lists the processes whose text differs from the text of rank 0.
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
		err = &data.Error{Dataset: s.spec.Dataset.Name, Problem: fmt.Sprintf("the samples of rank %s differ from those of rank 0 (number or SHA-256 of the files)", listed(others)),
			Hint: "every process reads the data set itself: give all machines the same files"}
	}
	return err
}

// open opens the run to resume. Processes other than rank 0 get a temporary copy of the files, so they need no shared disk.
// done removes the copy.
func (p *processes) open(run string, disk folder.Disk) (held *folder.Folder, done func(), err error) {
	done = func() {}
	if p.leads() {
		if held, err = folder.Open(run, disk); err == nil {
			err = p.send(held)
		}
		if err != nil && held != nil {
			err = errors.Join(err, held.Close())
		}
		return held, done, err
	}
	copied, err := os.MkdirTemp("", "tessera-resume-")
	if err != nil {
		return nil, done, fmt.Errorf("run %s: %w", run, err)
	}
	done = func() { _ = os.RemoveAll(copied) }
	for _, name := range sent {
		text, err := p.share(nil)
		if err == nil && len(text) > 0 {
			err = os.WriteFile(filepath.Join(copied, name), text, 0o600)
		}
		if err != nil {
			return nil, done, fmt.Errorf("run %s: the copy of %s: %w", run, name, err)
		}
	}
	held, err = folder.Open(copied, disk)
	return held, done, err
}

// sent lists the files that a process needs to resume.
var sent = []string{folder.Config, folder.State, folder.Environment}

// send sends the files of the run to the other processes; a missing file is sent as an empty one.
func (p *processes) send(held *folder.Folder) error {
	if p.group == nil {
		return nil
	}
	for _, name := range sent {
		text, err := regular.ReadUnlinked(held.Join(name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if _, err := p.share(text); err != nil {
			return err
		}
	}
	return nil
}

// ErrPreempted is the cause ([context.WithCancelCause]) if a scheduler stops a training and will start it again later.
var ErrPreempted = errors.New("preempted by a scheduler's signal")

// Interruption is the [ErrInterrupted] of a training that has written a checkpoint. All processes of a group return the same
// one, even if only one context was cancelled.
type Interruption struct {
	Run       string
	Step      int
	Epoch     int    // the current epoch, from 1
	Preempted bool   // the cause was [ErrPreempted] in at least one process
	Launcher  string // command that starts the same number of processes, such as "mpirun -n 2"; "" for one process
}

func (e *Interruption) Error() string {
	return fmt.Sprintf("%s: %v at step %d (epoch %d)", e.Run, ErrInterrupted, e.Step, e.Epoch)
}

func (e *Interruption) Unwrap() error { return ErrInterrupted }

// Reasons for a process to stop. All processes of a group use the largest reason of any of them, so that a preemption, after
// which a scheduler starts the training again, takes precedence.
const (
	running uint64 = iota
	interrupted
	preempted
)

// reason returns the reason why a context is done.
func reason(ctx context.Context) uint64 {
	switch {
	case ctx.Err() == nil:
		return running
	case errors.Is(context.Cause(ctx), ErrPreempted):
		return preempted
	}
	return interrupted
}

// preempted reports whether a scheduler stopped one of the processes. All processes must have halted.
func (p *processes) preempted(ctx context.Context) bool {
	if p.group == nil {
		return reason(ctx) == preempted
	}
	return p.halt == preempted
}
