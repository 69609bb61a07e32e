// Command samebytes compares the results of the shipped models and sweeps at two commits.
//
//	go -C tools run ./samebytes --base COMMIT [--only GLOB] [--jobs N] [--threads 2] [--data DIR] [--cache DIR] [--all]
//
// It builds the command of BASE and of the working tree, trains every shipped model and sweep of BASE for a few steps with
// both, and compares parameters, codes, outputs and metrics value by value. docs/dev/same-bytes.md lists the compared values.
// The exit code is 0 if everything is equal, 1 if something differs, failed or nothing was compared, 2 for wrong usage.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"syscall"
)

// exceptionsFile lists expected differences. It is not embedded, because the cache of base depends on the bytes of this
// program.
const exceptionsFile = "internal/tools/samebytes/exceptions.txt"

// options contains the flags of the command line.
type options struct {
	base    string // commit to compare with
	only    string // glob over names of models, sweeps and variants; "" for all
	data    string // folder with data sets
	cache   string // folder with the cached results of BASE
	jobs    int    // number of models that are compared at once
	threads int    // number of CPUs for one training
	all     bool   // print every difference instead of the first ones
}

// errUnequal reports that the printed report contains differences or failures.
var errUnequal = errors.New("not equal")

func main() {
	log.SetFlags(0)
	log.SetPrefix("samebytes: ")
	var o options
	flag.StringVar(&o.base, "base", "", "commit to compare the working tree with (required)")
	flag.StringVar(&o.only, "only", "", "compare only models, sweeps and variants whose name matches this glob")
	flag.StringVar(&o.data, "data", os.Getenv("TESSERA_DATA"), "folder with data sets")
	flag.StringVar(&o.cache, "cache", filepath.Join(os.TempDir(), "tessera-same-bytes"), "folder that keeps the results of BASE")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "how many models and sweeps are compared at once")
	flag.IntVar(&o.threads, "threads", 2, "CPUs that one training uses")
	flag.BoolVar(&o.all, "all", false, "print every difference, not only the first ones of each model")
	flag.Parse()
	if err := o.check(flag.Args()); err != nil {
		log.Print(err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// check returns an error for invalid flags.
func (o options) check(rest []string) error {
	switch {
	case o.base == "":
		return errors.New("--base: no commit given; name the commit to compare with (make same-bytes BASE=COMMIT)")
	case len(rest) > 0:
		return fmt.Errorf("unexpected argument %q; all settings are flags", rest[0])
	case o.jobs < 1:
		return fmt.Errorf("--jobs: got %d, want > 0", o.jobs)
	case o.threads < 1:
		return fmt.Errorf("--threads: got %d, want > 0", o.threads)
	}
	if _, err := path.Match(o.only, ""); err != nil {
		return fmt.Errorf("--only %s: %w", o.only, err)
	}
	return nil
}

// run compares and prints the report.
func run(ctx context.Context, o options, out io.Writer) error {
	root, commit, err := repository(ctx, o.base)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(exceptionsFile)))
	if err != nil {
		return err
	}
	exceptions, err := parseExceptions(exceptionsFile, string(text))
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "same-bytes-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	c, err := prepare(ctx, o, root, commit, work)
	if err != nil {
		return err
	}
	return c.report(ctx, o, &report{out: out, commit: commit, exceptions: exceptions, all: o.all, complete: o.only == ""})
}

// report compares the subjects that the flags select.
func (c *comparison) report(ctx context.Context, o options, r *report) error {
	subjects, added, err := c.subjects(ctx)
	if err != nil {
		return err
	}
	subjects = selected(subjects, o.only)
	fmt.Fprintf(r.out, "base %.12s, now the working tree: %d models, sweeps and variants\n", r.commit, len(subjects))
	for _, next := range c.compareAll(ctx, subjects, o.jobs) {
		v := <-next
		if ctx.Err() != nil {
			return errors.New("interrupted; the results of base so far are kept, the same command resumes")
		}
		r.add(v)
	}
	return r.finish(added)
}
