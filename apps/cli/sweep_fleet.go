package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"
	"tessera/sweep"
	"tessera/sweep/fleet"
)

// accessFlags say how a connection to a queue is secured.
type accessFlags struct {
	token, certificate, key, authority string
}

func (f *accessFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.token, "token-file", "", "file whose first line is the secret that coordinator and workers share")
	cmd.Flags().StringVar(&f.certificate, "tls-cert", "", "certificate of this machine, PEM")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "its private key, PEM")
	cmd.Flags().StringVar(&f.authority, "tls-ca", "", "certificates, PEM, by which those of the other side are verified")
	cmd.MarkFlagsRequiredTogether("tls-cert", "tls-key")
}

// access reads the token.
func (f *accessFlags) access() (a fleet.Access, err error) {
	a = fleet.Access{Certificate: f.certificate, Key: f.key, Authority: f.authority}
	if f.token != "" {
		if a.Token, err = fleet.ReadToken(f.token); err != nil {
			var unread *fs.PathError
			if errors.As(err, &unread) {
				return a, usagef("--token-file: %v", err)
			}
			return a, usagef("--token-file: %w", err)
		}
	}
	return a, nil
}

// fleetFlags are the flags of a sweep on several machines.
type fleetFlags struct {
	accessFlags
	listen, url string
	lease       time.Duration
	same        bool
}

func (f *fleetFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.listen, "listen", "", "address of a queue for workers on other machines, HOST:PORT; --jobs 0 trains on them alone")
	cmd.Flags().StringVar(&f.url, "nats", "", "URL of an existing NATS server with JetStream, instead of --listen")
	cmd.Flags().DurationVar(&f.lease, "lease", 30*time.Second, "with workers: how long one may be silent before its trials are given to others")
	cmd.Flags().BoolVar(&f.same, "same-kernels", false, "with workers: refuse those whose CPU selects other kernels than the first one's")
	f.accessFlags.add(cmd)
	cmd.MarkFlagsMutuallyExclusive("listen", "nats")
}

// check refuses flags that nothing would read.
func (f *fleetFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"lease", "same-kernels", "token-file", "tls-cert", "tls-key", "tls-ca"} {
		if cmd.Flags().Changed(name) && !f.used() {
			return usagef("--%s: needs --listen or --nats", name)
		}
	}
	return nil
}

// used reports whether the sweep has workers.
func (f *fleetFlags) used() bool { return f.listen != "" || f.url != "" }

// checkJobs checks --jobs: only a sweep with workers may train nothing by itself.
func (f *fleetFlags) checkJobs(jobs int) error {
	switch {
	case jobs < 0 && f.used():
		return usagef("--jobs: got %d, want >= 0", jobs)
	case jobs < 1 && !f.used():
		return usagef("--jobs: got %d, want > 0", jobs)
	}
	return nil
}

// onMachines makes a sweep one on several machines, if the flags say so.
func (f *fleetFlags) onMachines(o *sweep.Options, show *sweepProgress) error {
	if !f.used() {
		return nil
	}
	if f.lease < time.Second || f.lease > 24*time.Hour {
		return usagef("--lease: got %v, want from 1s to 24h", f.lease)
	}
	access, err := f.access()
	if err != nil {
		return err
	}
	c := fleet.Options{Listen: f.listen, Access: access, Jobs: o.Jobs, Lease: f.lease, SameKernels: f.same, Dirs: o.Dirs, Log: show.Note}
	if f.url != "" {
		if c.URL, err = fleet.Address(f.url); err != nil {
			return usagef("--nats: %w", err)
		}
	}
	if err := c.Check(); err != nil {
		return usageError{fmt.Errorf("--%w", err)}
	}
	coordinator := fleet.NewCoordinator(c)
	o.Elsewhere, o.Jobs, show.fleet = coordinator, max(1, o.Jobs), coordinator.Fleet
	return nil
}
