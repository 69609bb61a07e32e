package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/classical"
	"tessera/config"
	"tessera/data"
	"tessera/graph"
	"tessera/internal/lists"
	"tessera/internal/numeral"
	"tessera/internal/volume"
	"tessera/losses"
	"tessera/metrics"
	"tessera/optim"
)

func init() {
	Commands.Register("summary", "Show the layers, shapes and parameter counts of a model", func() Command { return &summaryCommand{} })
}

type summaryCommand struct {
	Model string `arg:"MODEL" is:"model" doc:"the name of a model"`
	modelFlags
	jsonFlag
	Plan bool `flag:"plan" without:"json" doc:"print the compiled plan of one training step instead"`
	Dot  bool `flag:"dot" without:"json plan" doc:"print the graph of columns, layers, values and terms for Graphviz instead"`
}

func (f *summaryCommand) Help() Help {
	return Help{Examples: []string{"tessera summary asym", "tessera summary shallow-nonneg-kl --plan", "tessera summary asym --dot | dot -Tsvg > asym.svg"}}
}

func (f *summaryCommand) Do(cmd *Call) error {
	m, err := f.model(f.Model)
	if err != nil {
		return err
	}
	s, err := summarise(cmd.Context(), m, data.SearchDirs(f.Data))
	if err != nil {
		return err
	}
	switch {
	case f.Plan && s.model == nil:
		return usagef("--plan: %s is a baseline and has no compiled plan", s.Model)
	case f.Dot && s.model == nil:
		return usagef("--dot: %s is a baseline and has no layers", s.Model)
	case f.Dot:
		return s.writeDot(cmd.OutOrStdout())
	case f.Plan:
		text, err := tessera.Plan(s.model)
		fmt.Fprint(cmd.OutOrStdout(), text)
		return err
	}
	return cmd.Show(s.document(cmd.Context()), f.JSON)
}

// summary is the output of `summary --json`.
type summary struct {
	Model      string         `json:"model"`
	Parameters int            `json:"parameters"`
	Trainable  int            `json:"trainable"`
	Layers     []layerSummary `json:"layers"`
	Values     []valueSummary `json:"values,omitempty"`          // set if a model has more than an encoder and a decoder
	Free       int            `json:"free_parameters,omitempty"` // of a density, as BIC counts them: also weights and covariances
	Memory     *memorySummary `json:"memory,omitempty"`          // set for a fit to a sparse matrix

	spec  *config.Model
	input []int        // shape of one image
	model *graph.Model // the model; nil for a baseline
}

type layerSummary struct {
	Path        string `json:"path"`
	Name        string `json:"name,omitempty"`
	Kind        string `json:"kind"`
	OutputShape []int  `json:"output_shape"`
	Parameters  int    `json:"parameters"`
	Trainable   int    `json:"trainable"`
}

// memorySummary describes the memory of a fit to a sparse matrix, in bytes.
type memorySummary struct {
	Rows       int `json:"rows"`
	Columns    int `json:"columns"`
	Entries    int `json:"entries"`
	Stored     int `json:"entries_bytes"`
	Factors    int `json:"factors_bytes"`
	Transposed int `json:"transposed_bytes"` // memory per thread
}

// memoryOf returns the memory of a fit to a sparse matrix, nil for other models.
func memoryOf(ctx context.Context, m *config.Model) (*memorySummary, error) {
	method, ok := m.Baseline.(*classical.MatrixFactorisation)
	source := data.SparseOf(m.Dataset.Source)
	if !ok || source == nil {
		return nil, nil
	}
	rows, columns, entries, err := source.CountEntries(ctx)
	s := &memorySummary{Rows: rows, Columns: columns, Entries: entries}
	s.Stored, s.Factors, s.Transposed = method.Memory(rows, columns, entries)
	return s, err
}

// String returns a description of the memory in one line.
func (s *memorySummary) String() string {
	return fmt.Sprintf("%s for %s entries of %s rows and %s columns, %s for their factors, %s for a part of the columns in each thread",
		numeral.Bytes(int64(s.Stored)), numeral.Count(s.Entries), numeral.Count(s.Rows), numeral.Count(s.Columns), numeral.Bytes(int64(s.Factors)), numeral.Bytes(int64(s.Transposed)))
}

func summarise(ctx context.Context, m *config.Model, dirs data.Dirs) (s *summary, err error) {
	shape, ok := m.Dataset.Source.Shape(dirs)
	if !ok { // the shape is only known from the files: loading them returns the error
		set, err := data.Load(ctx, m.Dataset.Source, dirs, data.Need{Train: true})
		if err != nil {
			return nil, err
		}
		shape = set.Shape
	}
	s = &summary{Model: m.Name, spec: m, input: shape}
	if m.Baseline != nil {
		if s.Memory, err = memoryOf(ctx, m); err != nil {
			return nil, err
		}
		return s, s.addBaseline()
	}
	built, err := graph.Empty(m, shape)
	if err != nil {
		return nil, err
	}
	s.model = built
	if err := graph.Check(m, shape); err != nil {
		return nil, err
	}
	for placed := range built.Layout.Layers() {
		layer := layerSummary{Path: placed.Path, Name: placed.Name, Kind: placed.Kind, OutputShape: placed.Out}
		for _, p := range placed.Parameters {
			if p.Of != "" {
				continue // counted in its layer
			}
			layer.Parameters += volume.Of(p.Shape)
			if !p.State && !m.Frozen(placed.Path+"."+p.Name) {
				layer.Trainable += volume.Of(p.Shape)
			}
		}
		s.Trainable += layer.Trainable
		s.Parameters += layer.Parameters
		s.Layers = append(s.Layers, layer)
	}
	for i, t := range m.Losses {
		for _, p := range losses.LearnedBy(t.Loss) {
			learned := layerSummary{Path: "loss." + m.TermName(i), Kind: t.Kind, OutputShape: []int{1}, Parameters: 1}
			if !m.Frozen(config.LearnedPath(m.TermName(i), p.Name)) {
				learned.Trainable = 1
			}
			s.Trainable += learned.Trainable
			s.Parameters += learned.Parameters
			s.Layers = append(s.Layers, learned)
		}
	}
	s.Values = namedValues(m, built.Layout)
	return s, nil
}

// addBaseline describes the parameters of a baseline: its atoms and its bias, if it has one.
func (s *summary) addBaseline() error {
	fit := s.spec.Baseline.Describe()
	add := func(path string, parameters int) {
		s.Layers = append(s.Layers, layerSummary{Path: path, Kind: s.spec.Kind, OutputShape: s.input, Parameters: parameters, Trainable: parameters})
	}
	add("atoms", fit.Units*volume.Of(s.input))
	if fit.Biased {
		add("bias", volume.Of(s.input))
	}
	for _, l := range s.Layers {
		s.Parameters += l.Parameters
	}
	s.Trainable = s.Parameters
	if method := s.spec.Baseline; method != nil {
		model, err := method.New(s.input, s.spec.Train.Seed)
		if err != nil {
			return err
		}
		if density, ok := model.(metrics.Density); ok {
			s.Free = density.Freedom()
		}
	}
	return nil
}

// document shows the summary. The JSON form is the summary itself.
func (s *summary) document(ctx context.Context) *doc.Document {
	d := &doc.Document{Title: strings.TrimSuffix(s.Model+": "+s.spec.About, ": "), Data: s}
	number := func(title string) doc.Column { return doc.Column{Title: title, Right: true} }
	t := &doc.Table{Columns: append(doc.Columns("layer", "kind", "output"), number("parameters"), number("trainable"))}
	t.Row("input", s.spec.Dataset.Name, doc.Shape(s.input), 0, 0)
	for _, l := range s.Layers {
		if l.Name != "" {
			l.Path += " (" + l.Name + ")"
		}
		t.Row(l.Path, l.Kind, doc.Shape(l.OutputShape), l.Parameters, l.Trainable)
	}
	values := &doc.Table{Columns: append(doc.Columns("value", "shape"), doc.Column{Title: "read by", Wrap: true})}
	for _, v := range s.Values {
		name := v.Name
		if v.Drawn != "" {
			name += " (" + drawnText(v.Drawn) + ")"
		}
		values.Row(name, cmp.Or(numeral.Shape(v.Shape), numeral.None), cmp.Or(strings.Join(v.ReadBy, ", "), numeral.None))
	}
	facts := &doc.Facts{}
	facts.Add("", "parameters", s.Parameters)
	facts.Add("", "trainable", s.Trainable)
	if s.Free > 0 {
		facts.Add("", "free parameters", fmt.Sprintf("%s of the density, with weights and covariances", numeral.Count(s.Free)))
	}
	if s.Memory != nil {
		facts.Add("", "memory", s.Memory.String())
	}
	facts.Add("", "data", usedColumns(ctx, s.spec))
	facts.Facts = append(facts.Facts, variants(s.spec)...)
	d.Add(t, values, facts)
	return d
}

// variants returns a fact for each unusual feature of a model's training.
func variants(m *config.Model) []doc.Fact {
	f := &doc.Facts{}
	f.Add("", "frozen", strings.Join(m.Freeze, ", "))
	if m.Start != nil {
		f.Add("", "initial parameters", fmt.Sprintf("from %s, %s", m.Start.From(), m.Start.On))
	}
	for _, p := range m.AllPlayers() {
		if p.Name != "" {
			f.Add("", "player "+p.Name, playerText(m, p))
		}
	}
	for _, h := range m.AllHooks() {
		f.Add("", "hook "+h.Name, hookText(m, h))
	}
	return f.Facts
}

// playerText returns a description of a player in one line.
func playerText(m *config.Model, p config.Moving) string {
	terms := lists.Map(p.Terms, m.TermName)
	text := fmt.Sprintf("trains %s, minimises %s, by %s", strings.Join(p.Trains, ", "), strings.Join(terms, " + "), p.Optimizer.Kind)
	if rule, ok := p.Optimizer.Optimizer.(optim.Rule); ok {
		text += fmt.Sprintf(" at %g", rule.LearningRate())
	}
	if p.Steps > 0 {
		text += fmt.Sprintf(", steps in a row: %d", p.Steps)
	}
	return text
}

// hookText returns the settings of a hook in one line.
func hookText(m *config.Model, h config.Hook) string {
	var texts []string
	for key, value := range m.Settings() {
		if name, ok := strings.CutPrefix(key, "hook."+h.Name+"."); ok {
			texts = append(texts, name+" = "+value)
		}
	}
	return cmp.Or(strings.Join(texts, ", "), "no settings")
}
