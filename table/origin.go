package table

import "slices"

// Origin is where the parts of a declaration are written, what is not known of them because their tables have errors, and
// under which names they were chosen. A part is "encoder[0]", "optimizer.schedule", ..., "" the declaration itself. A nil Origin,
// of what was made in Go, knows nothing.
type Origin struct {
	tables map[string]*Node
	doubts map[string]*Doubt
	names  map[string]string
}

func newOrigin() *Origin {
	return &Origin{map[string]*Node{}, map[string]*Doubt{}, map[string]string{}}
}

// Doubt is what is not known of a part because its table has errors. A nil Doubt is none.
type Doubt struct {
	fields []Field // keys whose values are wrong, or that a misspelt key was probably meant to be
	whole  bool    // the part itself is not known
}

// Table returns the table of a part, nil where there is none.
func (o *Origin) Table(part string) *Node {
	if o == nil {
		return nil
	}
	return o.tables[part]
}

// Doubt returns what is not known of a part, nil where all is.
func (o *Origin) Doubt(part string) *Doubt {
	if o == nil {
		return nil
	}
	return o.doubts[part]
}

// doubting is Doubt, to be written to.
func (o *Origin) doubting(part string) *Doubt {
	if o.doubts[part] == nil {
		o.doubts[part] = &Doubt{}
	}
	return o.doubts[part]
}

// Find gives a diagnostic of a part the place of one of its keys, or of an element of one ("key[1]"), else that of its kind, else
// its table's, else that of the declaration.
func (o *Origin) Find(d Diagnostic, key string) Diagnostic {
	if n := o.Table(d.Part); n != nil {
		d = n.find(d, key)
	}
	if root := o.Table(""); d.At.Source == nil && root != nil {
		d = d.In(root)
	}
	return d
}

func (n *Node) find(d Diagnostic, key string) Diagnostic {
	for _, k := range []string{key, "kind", "name"} {
		if c := n.value(k); c != nil && c.At.Source != nil {
			d.At, d.node = c.At, c
			return d
		}
	}
	d.At, d.node = n.At, n
	return d
}

// Any reports whether there is a doubt that is of a sort: the part itself, or a key that is takes.
func (d *Doubt) Any(is func(Field) bool) bool {
	return d != nil && (d.whole || slices.ContainsFunc(d.fields, is))
}

// About reports whether the part itself or one of its keys is in doubt.
func (d *Doubt) About(key string) bool { return d.Any(func(f Field) bool { return f.Key == key }) }
