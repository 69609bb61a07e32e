package train

import (
	"errors"
	"fmt"
	"strings"

	"tessera/graph"
)

// program is one compiled graph with the places of what the loop reads.
type program struct {
	*graph.Program
	runner    graph.Runner[float32]
	loss      int // tap
	code      int // tap, -1 where there is none
	output    int // tap, -1 where there is none
	terms     []int
	names     []string    // of the terms
	gradients [][]float32 // of the parameters in the stepper's order, read after every run
	of        []int       // for each of those, its place in Parameters; -1 where the graph does not read it
}

// compile builds and compiles the model's program, for images that the caller decomposes where its encoder does.
func compile(m *graph.Model, backend graph.Backend, o graph.Request) (*program, error) {
	o.Prepared = true
	return compilePlain(m, backend, o)
}

// compilePlain does the same for plain images.
func compilePlain(m *graph.Model, backend graph.Backend, o graph.Request) (*program, error) {
	built, err := m.Program(o)
	if err != nil {
		return nil, err
	}
	runner, err := backend.Compile(built)
	if err != nil {
		return nil, fmt.Errorf("model %q: batch %d: %w", m.Spec.Name, o.Batch, err)
	}
	p := &program{Program: built, runner: runner, loss: -1, code: -1, output: -1}
	for i, tap := range built.Taps {
		switch name, term := strings.CutPrefix(tap.Name, "loss."); {
		case term:
			p.terms, p.names = append(p.terms, i), append(p.names, name)
		case tap.Name == "loss":
			p.loss = i
		case tap.Name == "code":
			p.code = i
		case tap.Name == "output":
			p.output = i
		}
	}
	return p, nil
}

// follow makes Gradients return those of these parameters.
func (p *program) follow(parameters []*moved) {
	p.gradients = make([][]float32, len(parameters))
	p.of = make([]int, len(parameters))
	for i, m := range parameters {
		p.of[i] = -1
		for j, b := range p.Parameters {
			if b.Parameter == m.Parameter && b.Gradient != nil {
				p.of[i] = j
			}
		}
	}
}

// Gradients returns the gradients of the last run, nil for a parameter that the loss does not reach.
func (p *program) Gradients() [][]float32 {
	for i, j := range p.of {
		if j >= 0 {
			p.gradients[i] = p.runner.Gradient(j)
		}
	}
	return p.gradients
}

// Run runs the program on these inputs.
func (p *program) Run(inputs [][]float32) error {
	for i, v := range inputs {
		if err := p.runner.Bind(i, v); err != nil {
			return err
		}
	}
	return p.runner.Run()
}

// scalar returns the value of a tap of one value.
func (p *program) scalar(tap int) float64 { return float64(p.runner.Tap(tap)[0]) }

// compiled are programs of one model by batch size.
type compiled map[int]*program

// Close frees the programs.
func (c compiled) Close() error {
	var err error
	for _, p := range c {
		err = errors.Join(err, p.runner.Close())
	}
	return err
}
