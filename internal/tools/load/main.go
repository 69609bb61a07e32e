//go:build linux

// Command load measures `tessera serve` with clients on the same machine: requests per second in a closed loop, latency at a
// fixed rate, CPU time per request, memory, the effect of batching; and, for comparison, onnxruntime-node behind node's http
// server.
//
//	go build -o tessera ./apps/tessera
//	go -C tools run ./load --tessera ./tessera --run RUN [--onnx FILE --modules FOLDER] [--batching RUN] [--soak 10m]
//
// RUN is a run on images of 28x28. FILE is its model as ONNX, and FOLDER contains node_modules/onnxruntime-node. Rounds
// alternate between the servers, so that a drift of the machine's speed affects all servers equally. Linux only: CPU time and
// memory are read from /proc.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// settings contains the flags of the command line.
type settings struct {
	tessera, run, onnx, modules, batching string
	encoding                              string
	connections, rounds, workers          int
	length, soak                          time.Duration
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("bench: ")
	var s settings
	flag.StringVar(&s.tessera, "tessera", "./tessera", "the command")
	flag.StringVar(&s.run, "run", "", "run that is served")
	flag.StringVar(&s.onnx, "onnx", "", "the run's model as ONNX, for the peer")
	flag.StringVar(&s.modules, "modules", "", "folder with node_modules/onnxruntime-node")
	flag.IntVar(&s.workers, "node-workers", 1, "processes of the peer")
	flag.StringVar(&s.batching, "batching", "", "run that is served with and without batching")
	flag.StringVar(&s.encoding, "encoding", "json", "json or binary")
	flag.IntVar(&s.connections, "connections", 16, "connections of the closed loop")
	flag.IntVar(&s.rounds, "rounds", 5, "alternating rounds")
	flag.DurationVar(&s.length, "length", 4*time.Second, "of a measurement")
	flag.DurationVar(&s.soak, "soak", 0, "load at the highest rate for that long, with the memory logged")
	flag.Parse()
	if err := s.measure(); err != nil {
		log.Fatal(err)
	}
}

func (s *settings) measure() error {
	if s.run == "" && s.batching == "" {
		return fmt.Errorf("--run: got none, want the folder of a run")
	}
	if s.encoding != "json" && s.encoding != "binary" {
		return fmt.Errorf("--encoding: got %q, want json or binary", s.encoding)
	}
	if s.run != "" {
		if err := s.compare(s.ours("ours", s.run, 64), s.peer()); err != nil {
			return err
		}
	}
	if s.soak > 0 && s.run != "" {
		if err := s.soaked(); err != nil {
			return err
		}
	}
	if s.batching == "" {
		return nil
	}
	s.connections = 192 // three full batches, so that both workers have one
	return s.compare(s.ours("batches of 64", s.batching, 64), s.ours("no batching", s.batching, 1))
}

// compare runs alternating rounds of all servers and prints the medians.
func (s *settings) compare(servers ...*server) error {
	servers = slices.DeleteFunc(servers, func(v *server) bool { return v == nil })
	all := make([][]result, len(servers))
	for i, v := range servers {
		if err := v.start(); err != nil {
			return err
		}
		defer v.stop()
		if _, err := v.closedLoop(s.connections, time.Second); err != nil { // warms up
			return fmt.Errorf("%s: %w", servers[i].name, err)
		}
	}
	for round := range s.rounds {
		for i, v := range servers {
			r, err := v.closedLoop(s.connections, s.length)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			all[i] = append(all[i], r)
			log.Printf("round %d of %d: %s: %.0f requests/s, %.1f us of CPU each", round+1, s.rounds, v.name, r.rate(), r.cpuEach())
		}
	}
	return s.print(servers, all)
}

// print prints the medians, then the latency of each server at half of its maximum rate.
func (s *settings) print(servers []*server, all [][]result) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "server\trequests/s\tratio\tCPU us/request\tratio\thalf the rate\tp50 ms\tp99 ms\tp99.9 ms")
	first := all[0]
	for i, v := range servers {
		rate, each := median(all[i], result.rate), median(all[i], result.cpuEach)
		half, err := v.fixedRate(64, rate/2, 2*s.length)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.1f\t%.2f\t%.0f\t%.2f\t%.2f\t%.2f\n", v.name, rate, median(first, result.rate)/rate, each, each/median(first, result.cpuEach),
			half.rate(), half.percentile(50), half.percentile(99), half.percentile(99.9))
	}
	return t.Flush()
}

// soaked runs the server at its highest rate for a long time and logs its memory ten times.
func (s *settings) soaked() error {
	v := s.ours("ours", s.run, 64)
	if err := v.start(); err != nil {
		return err
	}
	defer v.stop()
	for i := range 10 {
		r, err := v.closedLoop(s.connections, s.soak/10)
		if err != nil {
			return err
		}
		resident, err := v.resident()
		if err != nil {
			return err
		}
		log.Printf("after %v: %.0f requests/s, p99 %.2f ms, resident %.1f MiB", s.soak*time.Duration(i+1)/10, r.rate(), r.percentile(99), resident)
	}
	return nil
}

func median(all []result, of func(result) float64) float64 {
	var x []float64
	for _, r := range all {
		x = append(x, of(r))
	}
	slices.Sort(x)
	return x[len(x)/2]
}

// result contains the measurements of one load.
type result struct {
	latencies []time.Duration
	length    time.Duration
	cpu       time.Duration // CPU time of the server
}

func (r result) rate() float64    { return float64(len(r.latencies)) / r.length.Seconds() }
func (r result) cpuEach() float64 { return r.cpu.Seconds() * 1e6 / float64(max(1, len(r.latencies))) }

// percentile returns a percentile of the latencies in milliseconds.
func (r result) percentile(p float64) float64 {
	slices.SortFunc(r.latencies, cmp.Compare)
	at := int(math.Ceil(p/100*float64(len(r.latencies)))) - 1
	return r.latencies[min(max(at, 0), len(r.latencies)-1)].Seconds() * 1e3
}
