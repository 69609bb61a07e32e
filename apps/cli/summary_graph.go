package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tessera/config"
	"tessera/internal/numeral"
	"tessera/layers"
	"tessera/losses"
)

// valueSummary describes a column or a value of a model, with its readers: layers by path, and terms of the loss.
type valueSummary struct {
	Name   string   `json:"name"`
	Shape  []int    `json:"shape"` // shape; empty if it is unknown
	ReadBy []string `json:"read_by"`
	Drawn  string   `json:"drawn,omitempty"` // kind of a drawn column
}

// reading is a use of a value by a layer or by a term of the loss.
type reading struct {
	value  string
	reader string // path of a layer, or name of a term
	term   bool
	key    string // key that names the value: against, mask or sample_weight of a term, or a key of the layer's kind; empty for on and from
}

func (r reading) String() string {
	text := r.reader
	if r.term {
		text = "loss " + text
	}
	if r.key != "" {
		text += " (" + r.key + ")"
	}
	return text
}

// readings lists the values that the layers and the terms of a model read.
func readings(m *config.Model, l *config.Layout) (list []reading) {
	for p := range l.Stacked() {
		for _, name := range p.From {
			list = append(list, reading{value: name, reader: p.Path})
		}
		for _, r := range layers.Readings(p.Layer) {
			list = append(list, reading{value: r.Name, reader: p.Path, key: r.Key})
		}
	}
	for i, t := range m.Losses {
		for _, name := range l.ValuesOf(t) {
			key := ""
			switch name {
			case t.On:
			case t.Mask, t.Present():
				key = "mask"
			case t.SampleWeight:
				key = "sample_weight"
			case t.Reads().Against:
				key = "against"
			}
			list = append(list, reading{name, m.TermName(i), true, key})
		}
	}
	return list
}

// hasFurtherValues reports whether a model is more than a chain of encoder and decoder layers: whether it has heads, layers
// with the key from or share, published values, or terms that read columns other than images.
func hasFurtherValues(m *config.Model, l *config.Layout) bool {
	for _, layer := range slices.Concat(m.Encoder, m.Decoder) {
		if len(layer.From) > 0 || layer.Share != "" {
			return true
		}
	}
	for p := range l.Stacked() {
		if len(p.Published) > 0 {
			return true
		}
	}
	return len(l.Heads) > 0 || slices.ContainsFunc(readings(m, l), func(r reading) bool {
		_, column := l.Column(r.value)
		return column && r.value != losses.Images
	})
}

// namedValues lists the columns that a model reads, its values, its published values, and the layer outputs that are read by
// more than the next layer. It returns nil for a model that is only an encoder and a decoder.
func namedValues(m *config.Model, l *config.Layout) (list []valueSummary) {
	if !hasFurtherValues(m, l) {
		return nil
	}
	all := readings(m, l)
	var columns, outputs []string
	for _, r := range all {
		if _, ok := l.Column(r.value); ok {
			columns = append(columns, r.value)
		} else if p, published := l.Of(r.value); p != nil && (published != "" || p.Path == r.value && !nextReads(l, r)) {
			outputs = append(outputs, r.value)
		}
	}
	for p := range l.Stacked() {
		for _, v := range p.Published {
			outputs = append(outputs, p.Path+"."+v.Name)
		}
	}
	var names []string
	for _, name := range slices.Concat(columns, l.Values(), outputs) {
		if slices.Contains(names, name) {
			continue
		}
		names = append(names, name)
		v := valueSummary{Name: name, Shape: l.Shape(name), Drawn: m.Drawn[name].Kind, ReadBy: []string{}}
		for _, r := range all {
			if r.value == name {
				v.ReadBy = append(v.ReadBy, r.String())
			}
		}
		list = append(list, v)
	}
	return list
}

// drawnText returns a description of how a column is drawn, "" if it is not drawn.
func drawnText(kind string) string {
	if kind == "" {
		return ""
	}
	return "drawn: " + kind
}

// nextReads reports whether the reader is the layer that follows the layer whose output it reads.
func nextReads(l *config.Layout, r reading) bool {
	for _, name := range l.Values() {
		list, _ := l.Stack(name)
		for i := 1; i < len(list); i++ {
			if list[i].Path == r.reader && list[i-1].Path == r.value {
				return true
			}
		}
	}
	return false
}

// dotGraph writes the text of a graph for Graphviz.
type dotGraph struct {
	out io.Writer
	err error
}

func (g *dotGraph) line(format string, args ...any) {
	if g.err == nil {
		_, g.err = fmt.Fprintf(g.out, format+"\n", args...)
	}
}

// node adds a node. Its label has a line for each text that is not empty.
func (g *dotGraph) node(id, attributes string, lines ...string) {
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	g.line("  %s [%s, label=%s]", dotText(id), attributes, dotText(lines...))
}

// edge adds an edge; label and attributes may be empty.
func (g *dotGraph) edge(from, to, label, attributes string) {
	if label != "" {
		label = "label=" + dotText(label)
	}
	list := slices.DeleteFunc([]string{label, attributes}, func(text string) bool { return text == "" })
	g.line("  %s -> %s [%s]", dotText(from), dotText(to), strings.Join(list, ", "))
}

// dotText returns the lines as a quoted string of Graphviz.
func dotText(lines ...string) string {
	for i, line := range lines {
		lines[i] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(inLine(line))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

// writeDot prints the graph of a model for Graphviz: columns as ellipses, the layers of each stack as boxes in a cluster, values with
// rounded corners, terms of the loss and players. Dashed lines are shared parameters and the parameters that players train.
func (s *summary) writeDot(out io.Writer) error {
	m, l := s.spec, s.model.Layout
	g := &dotGraph{out: out}
	g.line("digraph %s {", dotText(s.Model))
	g.line(`  graph [fontname="Helvetica"]`)
	g.line(`  node [fontname="Helvetica", fontsize=11]`)
	g.line(`  edge [fontname="Helvetica", fontsize=9]`)
	g.columns(m, l)
	g.stack("encoder", l.Encoder)
	g.stack("decoder", l.Decoder)
	for _, h := range l.Heads {
		g.stack("head "+h.Name, h.Layers)
	}
	g.values(l)
	for i, t := range m.Losses {
		g.node("loss "+m.TermName(i), "shape=octagon", "loss "+m.TermName(i), otherThan(m.TermName(i), t.Kind))
	}
	for _, r := range readings(m, l) {
		to := r.reader
		if r.term {
			to = "loss " + to
		}
		g.edge(r.value, to, r.key, "")
	}
	g.teachers(m)
	g.parameters(m, l)
	g.line("}")
	return g.err
}

// teachers adds the hooks that compute a value for a term by a copy of the model.
func (g *dotGraph) teachers(m *config.Model) {
	for _, h := range m.AllHooks() {
		for i, t := range m.Losses {
			if t.Reads().Teacher && t.TeacherName() == h.Name {
				g.node("hook "+h.Name, "shape=hexagon", "hook "+h.Name, "copy of the parameters")
				g.edge("hook "+h.Name, "loss "+m.TermName(i), t.On+" (teacher)", "")
			}
		}
	}
}

// otherThan returns kind, or "" if kind equals name.
func otherThan(name, kind string) string {
	if kind == name {
		return ""
	}
	return kind
}

func (g *dotGraph) columns(m *config.Model, l *config.Layout) {
	var seen []string
	for _, r := range readings(m, l) {
		if _, ok := l.Column(r.value); ok && !slices.Contains(seen, r.value) {
			seen = append(seen, r.value)
			g.node(r.value, "shape=ellipse", r.value, drawnText(m.Drawn[r.value].Kind), numeral.Shape(l.Shape(r.value)))
		}
	}
}

// stack adds the layers of a stack in a cluster.
func (g *dotGraph) stack(name string, list []config.Placed) {
	if len(list) == 0 {
		return
	}
	g.line("  subgraph %s {", dotText("cluster "+name))
	g.line("  label=%s", dotText(name))
	for _, p := range list {
		g.node(p.Path, "shape=box", p.Path, p.Kind, numeral.Shape(p.Out))
	}
	g.line("  }")
}

// values adds the values of a model and the published values, with the layers that compute them.
func (g *dotGraph) values(l *config.Layout) {
	names := l.Values()
	for p := range l.Stacked() {
		for _, v := range p.Published {
			names = append(names, p.Path+"."+v.Name)
		}
	}
	for _, name := range names {
		g.node(name, "shape=box, style=rounded", name, numeral.Shape(l.Shape(name)))
		if p, _ := l.Of(name); p != nil {
			g.edge(p.Path, name, "", "")
		}
	}
}

// parameters adds the layers that share parameters, the terms on parameters, and players.
func (g *dotGraph) parameters(m *config.Model, l *config.Layout) {
	const dashed = "style=dashed, constraint=false"
	for p := range l.Stacked() {
		var shared []string
		for _, parameter := range p.Parameters {
			if of := layerOf(l, parameter.Of); of != "" && of != p.Path && !slices.Contains(shared, of) {
				shared = append(shared, of)
				g.edge(of, p.Path, "shared parameters", dashed)
			}
		}
	}
	for i, t := range m.Losses {
		if !t.Reads().On {
			for _, path := range layersOf(l, l.MatchParameters(t.On)) {
				g.edge(path, "loss "+m.TermName(i), "parameters", "style=dashed")
			}
		}
	}
	for _, p := range m.AllPlayers() {
		if p.Name == "" {
			continue
		}
		id := "player " + p.Name
		g.node(id, "shape=hexagon", id, p.Optimizer.Kind)
		for _, i := range p.Terms {
			g.edge("loss "+m.TermName(i), id, "minimised by", "")
		}
		for _, path := range layersOf(l, trained(l, p)) {
			g.edge(id, path, "trains", dashed)
		}
	}
}

// layerOf returns the path of the layer that declares a parameter, "" if there is none.
func layerOf(l *config.Layout, parameter string) string {
	for p := range l.Stacked() {
		if strings.HasPrefix(parameter, p.Path+".") {
			return p.Path
		}
	}
	return ""
}

// layersOf lists the layers of some parameters, each layer once.
func layersOf(l *config.Layout, parameters []string) (paths []string) {
	for _, parameter := range parameters {
		if path := layerOf(l, parameter); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// trained lists the parameters that belong to a player. A shared parameter belongs to the player of the layer that declares
// it.
func trained(l *config.Layout, player config.Moving) (parameters []string) {
	for _, p := range l.Parameters() {
		if p.Of == "" && player.Moves(p.Path) {
			parameters = append(parameters, p.Path)
		}
	}
	return parameters
}
