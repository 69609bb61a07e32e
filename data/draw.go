package data

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"tessera/config/part"
	"tessera/internal/panics"
	"tessera/internal/random"
)

// Draw is a kind of column whose values are drawn at random instead of read: noise, masks, negatives. It must be safe for
// concurrent use.
type Draw interface {
	// Column returns the shape and the type of the values for one sample; the Name is ignored. other describes another column
	// of the samples (images, labels or another column that is not drawn). A type of "" means that the shape of another column
	// is not known yet.
	Column(other func(name string) (Column, bool)) (Column, error)
	// Draw writes the values for one sample to dst. It uses the random stream r.
	Draw(dst []float32, s Drawing, r *rand.Rand)
}

// DrawReader is a [Draw] that reads other columns of the samples.
type DrawReader interface {
	Draw
	// Reads lists the names of these columns.
	Reads() []string
}

// Draws contains every kind of drawn column.
var Draws = part.New[Draw]("column")

// Drawing identifies the sample for which values are drawn, and gives access to all samples of its set. In training these are
// the fitted samples, otherwise the samples that are measured or passed to the model. A sample that belongs to no set ends
// [Draw.Draw] when Draw asks for the set: [Drawn.DrawAlone] returns [ErrAlone].
type Drawing struct {
	images *Images // nil for a sample that belongs to no set
	sample int
}

// ErrAlone is the error for a column that is drawn from a set of samples, if there is no set.
var ErrAlone = errors.New("its values are drawn from a set of samples, and there is none")

func (d Drawing) set() *Images {
	if d.images == nil {
		panic(ErrAlone) // DrawAlone recovers it
	}
	return d.images
}

// Sample returns the index of the sample in its set.
func (d Drawing) Sample() int { return d.sample }

// Samples returns the number of samples.
func (d Drawing) Samples() int { return d.set().Len() }

// Values sets dst to the values of a column for samples of the set.
func (d Drawing) Values(dst []float32, column string, samples ...int) {
	d.set().Gather(dst, column, samples)
}

// Shaped contains the keys of drawn columns whose values can have any shape.
type Shaped struct {
	Shape []int  `toml:"shape" optional:"true" doc:"shape of the value of one sample; one number by default"`
	Like  string `toml:"like" optional:"true" doc:"column whose shape it has, in place of shape"`
}

func (s *Shaped) Check() error {
	if s.Like != "" && len(s.Shape) > 0 {
		return part.KeyErrorf("like", "shape is given too: leave out one of them")
	}
	if len(s.Shape) == 0 {
		return nil
	}
	if n, err := product(s.Shape); err != nil || n == 0 || slices.Min(s.Shape) < 1 {
		return part.KeyErrorf("shape", "got %v, want numbers > 0", s.Shape)
	}
	return nil
}

// ReadsShapes says that only the shapes of these columns are read.
func (s *Shaped) ReadsShapes() {}

// Reads implements [DrawReader]: the column that determines the shape.
func (s *Shaped) Reads() []string {
	if s.Like == "" {
		return nil
	}
	return []string{s.Like}
}

// Column implements [Draw] for values that are any numbers.
func (s *Shaped) Column(other func(name string) (Column, bool)) (Column, error) {
	return s.Of(Float32, other)
}

// Of returns a description of a column with the declared shape and the type t; other is the argument of [Draw.Column].
func (s *Shaped) Of(t Type, other func(name string) (Column, bool)) (Column, error) {
	c := Column{Shape: s.Shape, Type: t}
	if s.Like == "" {
		return c, nil
	}
	like, ok := other(s.Like)
	if !ok {
		return c, part.KeyErrorf("like", "there is no column %q", s.Like)
	}
	if c.Shape = like.Shape; like.Type == "" || like.Name == ImagesColumn && like.Shape == nil {
		c.Type = ""
	}
	return c, nil
}

// Drawn is a drawn column of a model.
type Drawn struct {
	Name string
	Draw Draw
}

// DrawAlone draws the values for a sample that belongs to no set. The error is [ErrAlone] for a kind that reads the samples of its
// set. A panic of the kind is an error too.
func (d Drawn) DrawAlone(dst []float32, r *rand.Rand) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case ErrAlone:
			err = fmt.Errorf("column %q: %w", d.Name, ErrAlone)
		default:
			err = fmt.Errorf("column %q: panicked: %w", d.Name, panics.Of(cause))
		}
	}()
	d.Draw.Draw(dst, Drawing{}, r)
	return nil
}

// Described returns the description c, from [Draw.Column], with the name of the drawn column. Image values are scaled like the
// images.
func (d Drawn) Described(c Column) Column {
	c.AsImages = c.Name == ImagesColumn
	c.Name, c.Missing, c.Drawn = d.Name, false, true
	return c
}

type drawnColumn struct {
	Column
	draw Draw
	seed uint64
}

// WithDrawn returns the same samples with drawn columns. [Images.Gather] returns values that depend only on the seed, the
// name of the column and the position of the sample in its file; [Images.DrawInto] draws new values.
func (m *Images) WithDrawn(seed uint64, columns ...Drawn) (*Images, error) {
	if m == nil || len(columns) == 0 {
		return m, nil
	}
	other := *m
	other.drawn = nil
	for _, d := range columns {
		c, err := d.Draw.Column(m.Column)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", d.Name, err)
		}
		if _, taken := m.Column(d.Name); taken {
			return nil, fmt.Errorf("column %q: the samples have a column of this name, so that none can be drawn", d.Name)
		}
		other.drawn = append(other.drawn, drawnColumn{d.Described(c), d.Draw, seed})
	}
	return &other, nil
}

func (m *Images) drawnBy(name string) *drawnColumn {
	if i := slices.IndexFunc(m.drawn, func(d drawnColumn) bool { return d.Name == name }); i >= 0 {
		return &m.drawn[i]
	}
	return nil
}

// IsDrawn reports whether a column is drawn.
func (m *Images) IsDrawn(column string) bool { return m.drawnBy(column) != nil }

// DrawnSize returns the number of values of a drawn column for one sample.
func (m *Images) DrawnSize(column string) int { return m.drawnBy(column).Size() }

// DrawInto sets dst to values of a drawn column for the samples with these indices, drawn from r one after the other.
func (m *Images) DrawInto(dst []float32, column string, indices []int, r *rand.Rand) {
	d := m.drawnBy(column)
	size := d.Size()
	for k, i := range indices {
		d.draw.Draw(dst[k*size:(k+1)*size], Drawing{m, i}, r)
	}
}

// drawOne sets dst to the values for sample i that are the same in every step.
func (m *Images) drawOne(dst []float32, d *drawnColumn, i int) {
	d.draw.Draw(dst, Drawing{m, i}, random.Stream(d.seed, "column."+d.Name, uint64(m.row(i))))
}

// DrawnAsRead returns the values of drawn columns for all samples, by name, as [Images.WithDrawn] defines them. Image values
// are unscaled, with NaN for missing entries.
func (m *Images) DrawnAsRead(seed uint64, columns ...Drawn) (map[string][]float32, error) {
	raw := *m
	raw.scaling, raw.missing, raw.drawn = nil, false, nil // samples that have the columns already get them again
	drawn, err := raw.WithDrawn(seed, columns...)
	if err != nil {
		return nil, err
	}
	all := map[string][]float32{}
	for _, d := range drawn.drawn {
		all[d.Name] = make([]float32, m.n*d.Size())
		for i := range m.n {
			drawn.drawOne(all[d.Name][i*d.Size():(i+1)*d.Size()], &d, i)
		}
	}
	return all, nil
}

// OneHotOf writes one row for each class: 1 at the class, or zeros if it is unknown. dst has rows of equal length, one per
// class.
func OneHotOf(dst, classes []float32) {
	clear(dst)
	for k, class := range classes {
		if width := len(dst) / len(classes); class >= 0 && int(class) < width {
			dst[k*width+int(class)] = 1
		}
	}
}
