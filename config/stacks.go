package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part/table"
	"tessera/data"
	"tessera/layers"
	"tessera/losses"
)

// Previous is the name of the previous layer's output in the key `from` of a layer. A layer reads this value by
// default.
const Previous = "previous"

// placing is a stack whose layers are being placed.
type placing struct {
	path, part string   // "head.class", "head.class.layers"
	name       string   // name of the stack's value: code, output or the name of a head
	source     []string // names of the values that the first layer reads
	list       []Layer
	units      openUnits
	unsized    string // reason why the number of outputs has no default, "" if there is no special reason

	begun, done bool
	placed      []Placed
	open        int // index of the layer whose number of outputs gets the default, -1 if no layer needs it; set by begin

	behind *placing // the stack for which this one waits, and its progress at that time
	far    int
}

// progress returns a number that grows whenever a layer of the stack is placed.
func (s *placing) progress() int {
	if s.done {
		return len(s.placed) + 1
	}
	return len(s.placed)
}

// openUnits describes the default number of outputs of a stack's last sized layer.
type openUnits struct {
	open bool // the number of outputs of this layer may be omitted
	size int  // default number of outputs; 0 if unknown
}

// opened returns the index of the layer whose number of outputs gets the default, -1 if no layer needs it.
func (u openUnits) opened(list []Layer) int {
	for i, l := range slices.Backward(list) {
		if sized, ok := l.Layer.(layers.Sized); ok && u.open && !isNil(l.Layer) {
			if sized.OutputUnits() == 0 {
				return i
			}
			return -1
		}
	}
	return -1
}

// stackOf returns the path of the stack that computes a value. If the value is the output of a layer, or is published
// by a layer, it also returns the index of the layer and the name of the published value. If it is the value of a whole
// stack, the index is -1. ok is false if no stack computes a value with this name.
func (m *Model) stackOf(name string) (path string, layer int, published string, ok bool) {
	switch {
	case name == losses.Code:
		return "encoder", -1, "", true
	case name == losses.Output:
		return "decoder", -1, "", true
	case m.hasHead(name):
		return headPart(name), -1, "", true
	}
	path, rest, _ := strings.Cut(name, ".")
	if path == "head" {
		var head string
		head, rest, _ = strings.Cut(rest, ".")
		path = headPart(head)
	}
	index, published, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(index)
	list, exists := m.stack(path)
	if err != nil || !exists || i < 0 || i >= len(list) || index != strconv.Itoa(i) {
		return "", 0, "", false
	}
	return path, i, published, true
}

// stack returns the layers of the stack with the given path: encoder, decoder or head.NAME.
func (m *Model) stack(path string) (list []Layer, ok bool) {
	switch path {
	case "encoder":
		return m.Encoder, true
	case "decoder":
		return m.Decoder, true
	}
	h, ok := m.Heads[strings.TrimPrefix(path, "head.")]
	return h.Layers, ok && strings.HasPrefix(path, "head.")
}

// reads returns the names of the values that layer i of a stack reads.
func (m *Model) reads(path string, source []string, list []Layer, i int) []string {
	before := source
	if i > 0 {
		before = []string{layerPath(path, i-1)}
	}
	if i >= len(list) || len(list[i].From) == 0 {
		return before
	}
	var names []string
	for _, name := range list[i].From {
		if name == Previous {
			names = append(names, before...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

func layerPath(stack string, i int) string { return stack + "." + strconv.Itoa(i) }

// source returns the names of the values that the first layer of a stack reads.
func (m *Model) source(path string) []string {
	switch path {
	case "encoder":
		return []string{losses.Images}
	case "decoder":
		return []string{losses.Code}
	}
	return m.Heads[strings.TrimPrefix(path, "head.")].From
}

// walk places every layer for images of the shape input; nil means an unknown shape.
func (m *Model) walk(input []int) *walk {
	w := &walk{model: m, layout: &Layout{Input: slices.Clone(input), Columns: m.allColumns(input), Holed: m.Holed(), index: map[string]int{}, at: map[string]*Placed{}}, stacks: map[string]*placing{}, layerNames: map[string]string{}, labelled: m.labelled()}
	for i, t := range m.Losses {
		for _, p := range losses.LearnedBy(t.Loss) {
			w.layout.learned = append(w.layout.learned, ParameterPath{Path: LearnedPath(m.TermName(i), p.Name),
				Parameter: layers.Parameter{Name: p.Name, Shape: []int{1}, Init: &layers.Constant{Value: p.Initial}, FanIn: 1, FanOut: 1}})
		}
	}
	w.stack("encoder", "encoder", losses.Code, m.Encoder, openUnits{})
	w.stack("decoder", "decoder", losses.Output, m.Decoder, openUnits{open: true, size: product(input)})
	for _, name := range slices.Sorted(maps.Keys(m.Heads)) {
		w.stack(headPart(name), headPart(name)+".layers", name, m.Heads[name].Layers, openUnits{})
	}
	for moved := true; moved; { // in each round, every stack in this order is placed as far as its inputs are placed
		moved = false
		for _, s := range w.order {
			moved = w.advance(s) || moved
		}
	}
	w.blocked()
	w.training()
	w.layout.sound = len(w.found) == 0 && input != nil
	return w
}

func (w *walk) stack(path, part, name string, list []Layer, units openUnits) {
	s := &placing{path: path, part: part, name: name, source: w.model.source(path), list: list, units: units}
	w.stacks[path], w.order = s, append(w.order, s)
	if path == headPart(name) && len(list) == 0 && w.model.origin.Doubt(path) == nil {
		w.report(path, "", "layers", "layers: got none, want at least one layer", "")
	}
}

// advance places the layers of a stack whose inputs are placed. It reports whether it placed any.
func (w *walk) advance(s *placing) (moved bool) {
	if s.behind != nil && s.behind.progress() == s.far { // skips waiting stacks, because in a long chain most stacks wait
		return false
	}
	for !s.done {
		in, ok := w.inputs(s)
		if !ok {
			if _, s.behind = w.waits(s); s.behind != nil {
				s.far = s.behind.progress()
			}
			return moved
		}
		if !s.begun {
			s.begun = true
			w.begin(s)
		}
		if moved = true; len(s.placed) == len(s.list) {
			w.finish(s)
			return moved
		}
		w.next(s, in)
	}
	return moved
}

// inputs returns the shape of the input of the next layer of a stack, nil if it is unknown. ok is false if the input is
// not placed yet.
func (w *walk) inputs(s *placing) (in []int, ok bool) {
	i := len(s.placed)
	if i > 0 && i == len(s.list) {
		return nil, true
	}
	if i > 0 && len(s.list[i].From) == 0 && s.list[i].Share == "" && len(s.list[i].readings()) == 0 {
		return s.placed[i-1].Out, true
	}
	names := w.model.reads(s.path, s.source, s.list, i)
	for _, name := range w.needs(s) {
		if !w.placed(name) {
			return nil, false
		}
	}
	in, err := joinedShape(names, w.shape)
	if err != nil {
		w.wrongInput(s, err.Error(), "")
	}
	return in, len(names) > 0
}

// needs returns the values and layers that must be placed before the next layer of a stack: its inputs, the values that
// it reads by name, and the layer whose parameters it shares.
func (w *walk) needs(s *placing) []string {
	i := len(s.placed)
	names := w.model.reads(s.path, s.source, s.list, i)
	if i >= len(s.list) {
		return names
	}
	for _, r := range s.list[i].readings() {
		names = append(slices.Clip(names), r.Name)
	}
	if name := s.list[i].Share; name != "" {
		if _, layer, published, ok := w.model.stackOf(name); ok && layer >= 0 && published == "" { // [walk.share] reports other names
			names = append(slices.Clip(names), name)
		}
	}
	return names
}

// readings returns the values that a layer reads by name.
func (l Layer) readings() []layers.Reading {
	if isNil(l.Layer) {
		return nil
	}
	return layers.Readings(l.Layer)
}

func (w *walk) placed(name string) bool {
	if _, ok := w.layout.Column(name); ok {
		return true
	}
	path, i, published, ok := w.model.stackOf(name)
	if !ok {
		return false
	}
	s := w.stacks[path]
	switch {
	case i < 0:
		return s.done && !(name == losses.Output && len(s.list) == 0)
	case published == "":
		return i < len(s.placed)
	}
	if i >= len(s.placed) {
		return false
	}
	if _, publishes := s.placed[i].Layer.(layers.Publisher); publishes && s.placed[i].assumed {
		return true
	}
	return slices.ContainsFunc(s.placed[i].Published, func(v layers.Value) bool { return v.Name == published })
}

// shape returns the shape of a placed value, nil if it is unknown.
func (w *walk) shape(name string) []int {
	if c, ok := w.layout.Column(name); ok {
		return shapeOfColumn(c)
	}
	path, i, published, ok := w.model.stackOf(name)
	if !ok {
		return nil
	}
	s := w.stacks[path]
	if i >= 0 {
		return s.placed[i].shapeOf(published)
	}
	if name == losses.Code {
		return w.layout.Code
	}
	if len(s.placed) > 0 && s.placed[len(s.placed)-1].Out != nil {
		return []int{product(s.placed[len(s.placed)-1].Out)}
	}
	return nil
}

// begin prepares a stack once the inputs of its first layer are placed.
func (w *walk) begin(s *placing) {
	s.placed = make([]Placed, 0, len(s.list))
	defer func() { s.open = s.units.opened(s.list) }()
	if !strings.HasPrefix(s.path, "head.") {
		return
	}
	if problem := w.model.misnamedValue("head", s.name); problem != "" {
		w.report(s.path, "", "", problem, "")
	}
	if w.labelled[s.name] { // the number of classes is the default number of units
		s.units.size = w.model.Classes()
		s.units.open = s.units.size > 0
		w.tooManyClasses(s)
		if source := w.model.readable(); !s.units.open && source != nil {
			s.unsized = data.WhyNoClasses(source, w.model.dirs)
		}
	} else if n := w.model.targetSize(s.name, w.layout); n > 0 {
		s.units = openUnits{open: true, size: n}
	} else if source, name := w.model.readable(), w.model.unknownTarget(s.name); name != "" && source != nil {
		s.unsized = data.WhyNoColumn(source, w.model.dirs, name)
	}
}

// next places the next layer of a stack.
func (w *walk) next(s *placing, in []int) {
	if slices.Contains(w.needs(s), losses.Labels) {
		if hint := w.unlabelled(); hint != "" {
			part, kind := w.reading(s)
			w.report(part, kind, "from", fmt.Sprintf("from: reads labels, but %s has none", w.model.Dataset.Name), hint)
		}
	}
	i := len(s.placed)
	l := s.list[i]
	s.placed = append(s.placed, Placed{Path: layerPath(s.path, i), Name: l.Name, Kind: l.Kind, Layer: copyOf(l.Layer), In: in, origin: w.model.origin,
		From: w.model.reads(s.path, s.source, s.list, i)})
	p := &s.placed[i]
	for _, r := range l.readings() {
		p.Reads = append(p.Reads, r.Name)
	}
	if len(p.Reads) > 0 {
		layers.Receive(p.Layer, w.received)
	}
	if i == s.open && s.units.size > 0 {
		p.Layer.(layers.Sized).SetOutputUnits(s.units.size)
	}
	w.unsized = s.unsized
	part := fmt.Sprintf("%s[%d]", s.part, i)
	if l.Name != "" {
		problem := w.model.misnamedValue("layer", l.Name)
		if other := w.layerNames[l.Name]; problem == "" && other != "" {
			problem = fmt.Sprintf("%q is also the name of %s", l.Name, other)
		}
		if w.layerNames[l.Name] = p.Path; problem != "" {
			w.report(part, l.Kind, "name", "name: "+problem, "give the layer another name")
		}
	}
	if d, ok := l.Layer.(layers.Fitted); ok {
		key, column := d.FittedTo()
		w.named(part, l.Kind, key, column)
	}
	p.Out = w.place(part, p, i == s.open)
	w.unsized = ""
	if l.Share != "" && p.Out != nil {
		w.share(part, p, l.Share)
	}
}

// received returns the shape of a value that a layer reads by name, nil if it is unknown.
func (w *walk) received(name string) []int {
	if !w.placed(name) {
		return nil
	}
	return w.shape(name)
}

// share replaces the parameters of a layer by those of another layer.
func (w *walk) share(part string, p *Placed, name string) {
	wrong := func(format string, args ...any) {
		w.report(part, p.Kind, "share", "share: "+fmt.Sprintf(format, args...), "name another layer of the same kind, input and settings, or remove the key")
	}
	path, i, published, ok := w.model.stackOf(name)
	if !ok || i < 0 || published != "" {
		wrong("%q is not the path of a layer, such as encoder.0", name)
		return
	}
	if i >= len(w.stacks[path].placed) || &w.stacks[path].placed[i] == p {
		return // the layers share in a cycle
	}
	other := &w.stacks[path].placed[i]
	if other.Out == nil || other.In == nil || p.In == nil {
		return // the parameters are unknown
	}
	if len(p.Parameters) == 0 && p.In != nil {
		wrong("%s (%s) has no parameters", p.Path, p.Kind)
	}
	p.Parameters = slices.Clone(p.Parameters)
	for k := range p.Parameters {
		own := &p.Parameters[k]
		j := slices.IndexFunc(other.Parameters, func(q layers.Parameter) bool { return q.Name == own.Name })
		switch {
		case j < 0:
			wrong("%s (%s) has no parameter %q", other.Path, other.Kind, own.Name)
			return
		case !slices.Equal(other.Parameters[j].Shape, own.Shape):
			wrong("%s.%s has the shape %v, but here %v is needed", other.Path, own.Name, other.Parameters[j].Shape, own.Shape)
			return
		}
		own.Of, own.Transposed = other.Path+"."+own.Name, false
		if q := other.Parameters[j]; q.Of != "" {
			own.Of, own.Transposed = q.Of, q.Transposed
		}
	}
}

// finish records the results of a stack whose layers are all placed.
func (w *walk) finish(s *placing) {
	s.done = true
	for i := range s.placed {
		w.layout.at[s.placed[i].Path] = &s.placed[i]
		if name := s.placed[i].Name; name != "" && w.layout.at[name] == nil {
			w.layout.at[name] = &s.placed[i]
		}
	}
	var out []int
	if n := len(s.placed); n > 0 {
		out = s.placed[n-1].Out
	}
	switch s.path {
	case "encoder":
		if w.layout.Encoder = s.placed; len(s.list) == 0 { // the expected value is unknown
			w.open = append(w.open, "encoder.0")
		}
		if out != nil {
			w.layout.Code = []int{product(out)}
		}
	case "decoder":
		if w.layout.Decoder = s.placed; out != nil && w.layout.Input != nil && product(out) != product(w.layout.Input) {
			w.wrongSize(out)
		}
	default:
		w.layout.index[s.name] = len(w.layout.Heads)
		w.layout.Heads = append(w.layout.Heads, PlacedHead{s.name, s.source, s.placed})
	}
}

// wrongSize reports a decoder whose output has a different size than the images.
func (w *walk) wrongSize(out []int) {
	i := w.sizing()
	s, _ := w.model.Decoder[i].Layer.(layers.Sized)
	w.report(fmt.Sprintf("decoder[%d]", i), w.model.Decoder[i].Kind, sizeKey(s), fmt.Sprintf(
		"the decoder gives %s values, but the images have %s", shapeText(out), shapeText(w.layout.Input)), "")
}

// wrongInput reports an error in the input of the next layer of a stack. The error is located at the key that declares
// the input.
func (w *walk) wrongInput(s *placing, problem, hint string) {
	part, kind := w.reading(s)
	key := "from"
	if i := len(s.placed); i < len(s.list) {
		own := fmt.Sprintf("%s[%d]", s.part, i)
		for _, r := range s.list[i].readings() {
			if !w.placed(r.Name) {
				key, part, kind = r.Key, own, s.list[i].Kind
			}
		}
		if s.list[i].Share != "" && !w.placed(s.list[i].Share) {
			key, part, kind = "share", own, s.list[i].Kind
		}
	}
	if !w.model.origin.Doubt(part).About(key) {
		w.report(part, kind, key, key+": "+problem, hint)
	}
}

// reading returns the part of the declaration that sets the input of the next layer of a stack.
func (w *walk) reading(s *placing) (part, kind string) {
	if i := len(s.placed); i < len(s.list) && len(s.list[i].From) > 0 {
		return fmt.Sprintf("%s[%d]", s.part, i), s.list[i].Kind
	}
	return s.path, ""
}

// blocked reports the stacks that read an unknown value. It reports each cycle once, at the name that sorts first. The
// remaining layers of an encoder or decoder get an unknown shape.
func (w *walk) blocked() {
	seen := map[*placing]int{} // number of the search in which a stack was reached
	for i, s := range w.order {
		if s.done {
			continue
		}
		name, of := w.waits(s)
		if of == nil {
			w.wrongInput(s, fmt.Sprintf("unknown value %q", name), w.suggestValue(name))
		}
		var chain []*placing
		at := s
		for ; at != nil && !at.done && seen[at] == 0; _, at = w.waits(at) {
			seen[at], chain = i+1, append(chain, at)
		}
		if at != nil && !at.done && seen[at] == i+1 && len(chain) > 0 {
			w.cycle(chain[slices.Index(chain, at):])
		}
	}
	for _, s := range w.order[:2] {
		for !s.done {
			if !s.begun {
				s.begun = true
				w.begin(s)
			}
			if len(s.placed) == len(s.list) {
				w.finish(s)
				break
			}
			w.next(s, nil)
		}
	}
}

// cycle reports a cycle of stacks: each stack in the chain waits for the next one, and the last stack waits for the
// first.
func (w *walk) cycle(chain []*placing) {
	names := make([]string, len(chain))
	for i, s := range chain {
		names[i] = s.name
		if part, _ := w.reading(s); part != s.path || s == w.stacks["decoder"] || s == w.stacks["encoder"] {
			names[i] = layerPath(s.path, len(s.placed))
		}
	}
	first := slices.Index(names, slices.Min(names))
	names = slices.Concat(names[first:], names[:first+1])
	at := chain[first]
	for _, s := range slices.Concat(chain[first:], chain[:first]) { // located where a key declares the input
		if len(s.placed) == len(s.list) {
			return // a head without layers, which has an error already
		}
		if l := s.list[len(s.placed)]; len(l.From) > 0 || l.Share != "" {
			at = s
			break
		}
	}
	w.wrongInput(at, "a cycle: "+strings.Join(names, " -> "), "let one of them read a value that does not depend on it")
}

// waits returns the first value for which the next layer of a blocked stack waits, and the stack that computes it. The
// stack is nil if the value does not exist.
func (w *walk) waits(s *placing) (name string, of *placing) {
	for _, name := range w.needs(s) {
		if w.placed(name) {
			continue
		}
		path, i, published, ok := w.model.stackOf(name)
		if !ok || name == losses.Output && len(w.model.Decoder) == 0 || published != "" && i < len(w.stacks[path].placed) {
			return name, nil
		}
		return name, w.stacks[path]
	}
	return "", nil
}

// suggestValue suggests the value with the most similar name.
func (w *walk) suggestValue(name string) string {
	if name == data.HeldOutColumn || name == data.CompleteColumn {
		return forMetrics
	}
	return table.Suggest(name, w.reachable(name))
}

// tooManyClasses reports labels that would give a head too many units. The size of the stack is then unknown.
func (w *walk) tooManyClasses(s *placing) {
	i := s.units.opened(s.list)
	if i < 0 || s.units.size <= maxClasses {
		return
	}
	w.report(fmt.Sprintf("%s[%d]", s.part, i), s.list[i].Kind, layers.SizeKey, fmt.Sprintf(
		"%s: the number of classes comes from the largest label (got label %d, want at most %d)", layers.SizeKey, s.units.size-1, maxClasses-1),
		"number the classes 0, 1, 2, ...")
	s.units.size = 0
}

// rangeOf returns the range of a value for images with values in the interval images. known is false if the range is
// unknown. last is the layer that determines the range.
func (m *Model) rangeOf(name string, images layers.Interval) (r layers.Interval, known bool, last string) {
	found := m.rangeWithin(name, images, map[string]valueRange{})
	return found.Interval, found.known, found.last
}

type valueRange struct {
	layers.Interval
	known bool
	last  string // layer that determines the range
}

// rangeWithin is like rangeOf and stores the ranges that it computes in seen. A layer in a cycle has an unknown range.
func (m *Model) rangeWithin(name string, images layers.Interval, seen map[string]valueRange) valueRange {
	if name == losses.Images {
		return valueRange{images, true, "the images"}
	}
	path, i, published, ok := m.stackOf(name)
	list, _ := m.stack(path)
	if i < 0 {
		i = len(list) - 1
	}
	if !ok || published != "" || i < 0 {
		return valueRange{layers.Everything, false, name}
	}
	at := layerPath(path, i)
	if r, ok := seen[at]; ok {
		return r
	}
	r := valueRange{layers.Everything, false, fmt.Sprintf("%s (%s)", placeOf(at), list[i].Kind)}
	if seen[at] = r; list[i].Layer == nil || m.origin.Doubt(placeOf(at)).Any(aboutValues) {
		return r
	}
	for k, from := range m.reads(path, m.source(path), list, i) {
		in := m.rangeWithin(from, images, seen)
		if k == 0 {
			r.Interval, r.known = in.Interval, in.known
		} else {
			r.Low, r.High, r.known = min(r.Low, in.Low), max(r.High, in.High), r.known && in.known
		}
	}
	r.Interval = layers.OutputRange(list[i].Layer, r.Interval)
	r.known = r.known || r.Interval == layers.OutputRange(list[i].Layer, unit)
	seen[at] = r
	return r
}

// end returns the path of the last layer in the stack of a layer.
func (m *Model) end(path string) string {
	stack, _, _, _ := m.stackOf(path)
	list, _ := m.stack(stack)
	return layerPath(stack, len(list)-1)
}
