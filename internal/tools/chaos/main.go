// Command chaos runs a sweep on several simulated machines, which are processes on this machine. It kills workers and the
// coordinator at random, cuts and delays their connections, fills the disk of one worker and shifts the clock of another. At
// the end it compares the sweep byte by byte with that of a single machine.
//
//	go -C tools run ./chaos --trials 40 --kills 60
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.trials, "trials", 40, "number of trials")
	flag.IntVar(&o.epochs, "epochs", 400, "epochs of a trial")
	flag.IntVar(&o.kills, "kills", 60, "number of SIGKILLs")
	flag.IntVar(&o.workers, "workers", 3, "number of workers")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the moments")
	flag.DurationVar(&o.pause, "pause", 1500*time.Millisecond, "mean time between kills")
	flag.DurationVar(&o.lease, "lease", 2*time.Second, "of the sweep")
	flag.StringVar(&o.tessera, "tessera", "", "the program; \"\": it is built")
	flag.StringVar(&o.wrong, "wrong-clock", "", "the program with a clock that CHAOS_CLOCK sets wrong; \"\": it is built; none: not used")
	flag.StringVar(&o.dir, "dir", "", "working folder; \"\": a new one")
	flag.Parse()
	o.least = o.kills
	report, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
	fmt.Print(report)
}

// options contains the faults and their numbers.
type options struct {
	trials, epochs, kills, workers int
	least                          int // minimum number of kills; fewer are an error
	seed                           uint64
	pause, lease                   time.Duration
	tessera, wrong, dir            string
}

// declaration returns the models.toml of the sweep.
func (o options) declaration() string {
	return fmt.Sprintf(`[model.small]
dataset = { name = "bars", count = 400 }
encoder = [{ kind = "gaussian_noise" }, { kind = "dense", units = 16, activation = "sigmoid" }]
loss = [{ kind = "mse" }, { kind = "kl", weight = 0.001, target = 0.2 }]
constraint = [{ kind = "nonneg" }]
train = { epochs = %d, batch = 32, checkpoint_seconds = 0.2 }

[sweep.chaos]
model = "small"
seeds = [1, 2]
set.loss.1.target = { from = 0.05, to = 0.4, count = %d }
`, o.epochs, o.trials/2)
}

// prepare builds missing programs and runs the sweep on one machine.
func (o *options) prepare() (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "chaos-"); err != nil {
			return err
		}
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return err
	}
	if o.tessera == "" {
		o.tessera = filepath.Join(o.dir, "tessera")
		if err := build(o.tessera, ""); err != nil {
			return err
		}
	}
	if o.wrong == "" {
		o.wrong = filepath.Join(o.dir, "tessera-wrong-clock")
		overlay, err := wrongClock(o.dir)
		if err != nil {
			return err
		}
		if err := build(o.wrong, overlay); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(o.dir, "models.toml"), []byte(o.declaration()), 0o666)
}
