package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// exitFull is the exit code of a worker whose disk is full.
const exitFull = 7

// process is a worker or the coordinator. It is restarted whenever it ends.
type process struct {
	name    string
	command func() *exec.Cmd
	running *exec.Cmd
	ended   chan error
	again   time.Time // time of the next start

	starts, kills, full int
	log                 bytes.Buffer
}

func (p *process) start() error {
	p.running = p.command()
	p.running.Stdout, p.running.Stderr = &p.log, &p.log
	p.starts++
	if err := p.running.Start(); err != nil {
		return err
	}
	p.ended = make(chan error, 1)
	go func(cmd *exec.Cmd, ended chan error) { ended <- cmd.Wait() }(p.running, p.ended)
	return nil
}

// poll checks whether the process has ended, and restarts it when due. It returns the exit code of a process that has just
// ended by itself, otherwise -1.
func (p *process) poll() (code int, err error) {
	if p.running == nil {
		if time.Now().After(p.again) {
			return -1, p.start()
		}
		return -1, nil
	}
	select {
	case <-p.ended:
		code = p.running.ProcessState.ExitCode()
		p.running, p.again = nil, time.Now().Add(500*time.Millisecond)
		if code == exitFull {
			p.full++
		}
		return code, nil
	default:
		return -1, nil
	}
}

// kill kills the process if it is running, and reports whether it did.
func (p *process) kill(pause time.Duration) bool {
	if p.running == nil || p.running.Process.Kill() != nil {
		return false
	}
	<-p.ended
	p.kills++
	p.running, p.again = nil, time.Now().Add(pause)
	return true
}

// fleet contains the coordinator and the workers.
type fleet struct {
	options
	random      *rand.Rand
	coordinator *process
	workers     []*process
	proxies     []*proxy
	filler      string // path of the file that fills the disk of the last worker; "" if this worker has no separate disk
	unmount     func()
}

// run runs the sweep without and with faults, compares both, and returns the report.
func run(o options) (string, error) {
	if err := o.prepare(); err != nil {
		return "", err
	}
	began := time.Now()
	alone := exec.Command(o.tessera, "sweep", "chaos", "--out", "alone", "--quiet")
	alone.Dir = o.dir
	if out, err := alone.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the sweep on one machine: %w\n%s", err, out)
	}
	single := time.Since(began)
	f, err := o.fleet()
	if err != nil {
		return "", err
	}
	began = time.Now()
	err = f.chaos()
	f.stop()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, f.logs())
	}
	took := time.Since(began)
	files, err := compare(filepath.Join(o.dir, "alone"), filepath.Join(o.dir, "fleet"))
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, f.logs())
	}
	return f.report(single, took, files), nil
}

func (o options) fleet() (*fleet, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	_ = l.Close()
	f := &fleet{options: o, random: rand.New(rand.NewPCG(o.seed, 0)), unmount: func() {}}
	command := func(program string, clock int64, args ...string) func() *exec.Cmd {
		return func() *exec.Cmd {
			cmd := exec.Command(program, args...)
			cmd.Dir, cmd.Env = o.dir, append(os.Environ(), fmt.Sprintf("CHAOS_CLOCK=%d", clock))
			return cmd
		}
	}
	f.coordinator = &process{name: "coordinator", command: command(o.tessera, 0, "sweep", "chaos", "--out", "fleet", "--listen", address, "--jobs", "1", "--lease", o.lease.String())}
	for i := range o.workers {
		p, err := newProxy(address, o.seed+uint64(i))
		if err != nil {
			return nil, err
		}
		f.proxies = append(f.proxies, p)
		cache, program, clock := filepath.Join(o.dir, fmt.Sprintf("cache-%d", i)), o.tessera, int64(0)
		if i == 0 && o.wrong != "none" {
			program, clock = o.wrong, -7*365*24*3600
		}
		if i == o.workers-1 {
			f.fill(cache)
		}
		f.workers = append(f.workers, &process{name: fmt.Sprintf("worker %d", i), command: command(program, clock, "worker", p.URL(), "--jobs", "2", "--cache", cache)})
	}
	return f, nil
}

// fill gives a worker a small separate disk and fills it.
func (f *fleet) fill(cache string) {
	if os.MkdirAll(cache, 0o777) != nil || exec.Command("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", cache).Run() != nil {
		return // not root
	}
	f.unmount = func() { _ = exec.Command("umount", "-l", cache).Run() }
	f.filler = filepath.Join(cache, "filler")
	_ = os.WriteFile(f.filler, make([]byte, 2<<20), 0o666) // as much as fits
}

// chaos starts all processes and kills them until the number of kills is reached, then waits for the end of the sweep.
func (f *fleet) chaos() error {
	killed, next := 0, time.Now().Add(f.pause)
	all := append([]*process{f.coordinator}, f.workers...)
	deadline := time.Now().Add(time.Hour)
	for {
		for _, p := range all {
			code, err := p.poll()
			if err != nil {
				return err
			}
			if p == f.coordinator && code == 0 {
				if killed < f.least {
					return fmt.Errorf("the sweep ended after %d kills, want %d: take more --epochs", killed, f.least)
				}
				return nil
			}
			if p == f.coordinator && code > 0 || code > 0 && code != exitFull {
				return fmt.Errorf("%s ended with code %d", p.name, code)
			}
		}
		if killed < f.kills && time.Now().After(next) {
			if all[f.random.IntN(len(all))].kill(time.Duration(f.random.IntN(1000)) * time.Millisecond) {
				killed++
			}
			next = time.Now().Add(time.Duration(f.random.Int64N(int64(2 * f.pause))))
		}
		if killed >= f.kills/2 && f.filler != "" {
			_ = os.Remove(f.filler) // from now on there is space
		}
		if time.Now().After(deadline) {
			return errors.New("the sweep has not ended within an hour")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stop ends the workers.
func (f *fleet) stop() {
	for _, p := range append(f.workers, f.coordinator) {
		if p.running != nil {
			_ = p.running.Process.Kill()
			<-p.ended
		}
	}
	f.unmount()
}

// logs returns the last lines of the logs of every process.
func (f *fleet) logs() string {
	var b strings.Builder
	for _, p := range append([]*process{f.coordinator}, f.workers...) {
		lines := strings.Split(p.log.String(), "\n")
		fmt.Fprintf(&b, "--- %s\n%s\n", p.name, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
	return b.String()
}
