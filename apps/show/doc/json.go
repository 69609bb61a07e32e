package doc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// JSON writes the document as one JSON value; see the package comment for its members.
func (d *Document) JSON(w io.Writer) error {
	var m members
	if d.Data != nil {
		list, err := m.take(d.Data)
		if err != nil {
			return err
		}
		if list {
			return write(w, d.Data)
		}
	}
	for _, b := range d.Blocks {
		if err := b.json(&m); err != nil {
			return err
		}
	}
	if len(m.notes) > 0 {
		if err := m.add("notes", m.notes); err != nil {
			return err
		}
	}
	return write(w, &m)
}

func write(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// encoded is the JSON of a value without escapes of HTML.
func encoded(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(plain(v))
	return b.Bytes(), err
}

// members are the members of an object, in order.
type members struct {
	keys   []string
	values []json.RawMessage
	notes  []string
}

func (m *members) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, key := range m.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := encoded(key)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.values[i])
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// take adds the members of a struct or a map. It reports whether the value is a list or a single value instead.
func (m *members) take(v any) (other bool, err error) {
	raw, err := encoded(v)
	if err != nil {
		return false, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return true, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false, err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return false, err
		}
		m.keys, m.values = append(m.keys, fmt.Sprint(key)), append(m.values, value)
	}
	return false, nil
}

// add adds a member, unless there is one with its key.
func (m *members) add(key string, v any) error {
	if key == "" || slices.Contains(m.keys, key) {
		return nil
	}
	raw, err := encoded(v)
	if err != nil {
		return fmt.Errorf("doc: %s: %w", key, err)
	}
	m.keys, m.values = append(m.keys, key), append(m.values, raw)
	return nil
}

func (f *Facts) json(m *members) error {
	to := m
	if f.Key != "" {
		to = &members{}
	}
	for _, one := range f.Facts {
		if err := to.add(one.Key, one.Value); err != nil {
			return err
		}
	}
	if to != m {
		return m.add(f.Key, to)
	}
	return nil
}

func (t *Table) json(m *members) error {
	if t.Key == "" {
		return nil
	}
	rows := make([]*members, len(t.Rows))
	for i, row := range t.Rows {
		rows[i] = &members{}
		for j, cell := range row {
			if j < len(t.Columns) {
				if err := rows[i].add(t.Columns[j].Key, cell); err != nil {
					return err
				}
			}
		}
	}
	return m.add(t.Key, rows)
}

func (n *Note) json(m *members) error {
	m.notes = append(m.notes, n.line())
	return nil
}

func (f *Figure) json(m *members) error {
	if f.Path == "" {
		return nil
	}
	return m.add(f.Key, f.Path)
}

func (g *Gallery) json(*members) error { return nil }

func (c *Curves) json(m *members) error { return m.add(c.Key, c.Lines) }

func (g *Group) json(m *members) error {
	for _, b := range g.Blocks {
		if err := b.json(m); err != nil {
			return err
		}
	}
	return nil
}
