package study

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"tessera"
	"tessera/data"
	"tessera/internal/atomicfile"
	"tessera/internal/regular"
	"tessera/show/figures"
	"tessera/sweep"
	"tessera/train/folder"
)

// The files of a page.
const (
	Folder    = "page"      // below the folder of the sweep
	PageFile  = "README.md" // the page
	TableFile = "table.csv" // its rows
	NotesFile = "notes.md"  // what somebody wrote about the rows; it is put into the page and never written
)

// Options are the settings of a page.
type Options struct {
	Data    string // as of tessera.Options
	Threads int    // as of tessera.Options

	rows []figures.Published // what was published; nil takes all
}

// Page is a written page.
type Page struct {
	Reproduction
	Path string // its folder
	Rows []figures.ComparedRow

	split     data.Split // of the measured images
	flags     []string   // that changed the declaration, as words of a command line
	notes     string
	first     string   // the trained model that the others are compared with, "" if none was trained
	differing []string // metrics in which they are compared; none without two common seeds
	failed    []sweep.Row
	figures   []figure // that are drawn
}

// Write writes the page of a sweep that was run, its table and its figures, into the folder page of the sweep. Files of an older
// page are replaced. A file that cannot be written is a [*folder.WriteError].
func (r Reproduction) Write(ctx context.Context, s *sweep.Sweep, results *sweep.Results, o Options) (*Page, error) {
	if s == nil || results == nil {
		return nil, errors.New("study: no sweep, or no results of it, to write a page of")
	}
	if o.rows == nil {
		o.rows = figures.PublishedRows()
	}
	all, err := settings(s, results)
	if err != nil {
		return nil, err
	}
	var measured []figures.Measured
	for _, one := range all {
		measured = append(measured, one.Measured)
	}
	p := &Page{Reproduction: r, Path: filepath.Join(s.Path, Folder), Rows: figures.Compare(r.published(o.rows, measured), measured),
		split: data.Split(results.Split), flags: results.Flags()}
	p.differ(results, measured, all)
	for _, row := range results.Trials {
		if row.Error != "" {
			p.failed = append(p.failed, row)
		}
	}
	if err := os.MkdirAll(p.Path, 0o777); err != nil {
		return nil, &folder.WriteError{Path: p.Path, Err: err}
	}
	p.tidy()
	if err := p.readNotes(); err != nil {
		return nil, err
	}
	g, err := r.newGallery(ctx, s.Path, all, tessera.Options{Data: o.Data, Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	if err := p.drawAll(g); err != nil {
		return nil, err
	}
	if err := p.write(TableFile, figures.ComparisonCSV(p.Rows)); err != nil {
		return nil, err
	}
	return p, p.write(PageFile, p.markdown())
}

// tidy removes the half-written files of a killed process.
func (p *Page) tidy() {
	names := []string{PageFile, TableFile}
	for _, f := range drawings {
		names = append(names, f.name+".png")
	}
	atomicfile.Tidy(atomicfile.OS{}, p.Path, names...)
}

// drawAll draws the figures that have data.
func (p *Page) drawAll(g *gallery) error {
	for _, f := range drawings {
		path := filepath.Join(p.Path, f.name+".png")
		if !slices.Contains(p.Figures, f.name) {
			continue
		}
		drawn, err := f.draw(g)
		if err != nil {
			return err
		}
		if drawn == nil {
			continue
		}
		if err := drawn.Save(path); err != nil {
			return &folder.WriteError{Path: path, Err: err}
		}
		p.figures = append(p.figures, f)
	}
	return nil
}

// readNotes reads the explanations that a user wrote.
func (p *Page) readNotes() error {
	text, err := regular.ReadFile(filepath.Join(p.Path, NotesFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	p.notes = string(text)
	return nil
}

func (p *Page) write(name string, text []byte) error {
	path := filepath.Join(p.Path, name)
	err := atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	if err != nil {
		return &folder.WriteError{Path: path, Err: err}
	}
	return nil
}
