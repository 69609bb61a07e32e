package page

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"tessera/apps/show/comparison"
	"tessera/apps/show/doc"
	"tessera/apps/show/figures"
	"tessera/internal/lists"
	"tessera/internal/numeral"
)

// Comparison is the page that compares models.
type Comparison struct {
	*comparison.Table
	Live bool // the page is served by `tessera ui`
}

const mostPairs = 120

// Write renders the page.
func (c *Comparison) Write(w io.Writer) error {
	if c == nil || c.Table == nil || len(c.Models) == 0 {
		return errors.New("page: no comparison to write: make one with comparison.Compare")
	}
	names := lists.Map(c.Models, func(m *comparison.Model) string { return m.Name })
	title := strings.Join(names, " and ")
	body := struct {
		*Comparison
		Title string
		Pairs []doc.Block
	}{c, title, c.pairs()}
	return write(w, "comparison.html", frame{Title: title + " - Tessera", Live: c.Live, Data: map[string]any{}, Body: body})
}

// pairs draws the atoms of every model matched with those of the first one.
func (c *Comparison) pairs() (list []doc.Block) {
	first := c.Reference()
	for _, m := range c.Models {
		if len(m.Pairs) == 0 {
			continue
		}
		words := fmt.Sprintf("Atoms of %s (left) and %s (right), matched one to one by the Hungarian algorithm on |cosine|: mean %s; the best matching of atoms with permuted pixels has %s.",
			first.Label, m.Label, numeral.Float(m.First.Matched), numeral.Float(m.First.Permuted))
		if len(m.Pairs) > mostPairs {
			words += fmt.Sprintf(" The %d most similar pairs of %d are shown.", mostPairs, len(m.Pairs))
		}
		p := newPainter(first.Atoms().Shape).forVectors(first.Atoms().Values, m.Atoms().Values)
		each := &doc.Gallery{Style: "pairs"}
		for _, pair := range m.Pairs[:min(mostPairs, len(m.Pairs))] {
			each.Pictures = append(each.Pictures, doc.Picture{Caption: fmt.Sprintf("%d and %d: %s", pair.First, pair.Second, numeral.Fixed(pair.Cosine, 3)), About: "atom",
				PNG: []string{p.draw(figures.Signed, atom(first.Atoms(), pair.First)), p.draw(figures.Signed, atom(m.Atoms(), pair.Second))}})
		}
		list = append(list, &doc.Group{Title: "Atoms in pairs: " + m.Label, Blocks: []doc.Block{doc.Remark("%s", words), each}})
	}
	return list
}
