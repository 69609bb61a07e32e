package losses

import (
	"errors"
	"fmt"
	"slices"

	"gorgonia.org/gorgonia"
)

// Build builds the term l on the named value, from v. It is an error if the term requests something from v that it does not
// declare in [Reads], or if it returns no node.
func Build(l Loss, on string, v Values) (*gorgonia.Node, error) {
	n, err := l.Build(&declared{v, l.Reads(), on})
	if err == nil && n == nil {
		err = errors.New("its Build returns no node")
	}
	return n, err
}

// declared restricts Values to what a term declares.
type declared struct {
	values Values
	reads  Reads
	on     string
}

// undeclared is the error of a term that requests something it does not declare.
func undeclared(what string) error { return fmt.Errorf("it does not declare that it reads %s", what) }

// On implements [Values].
func (d *declared) On() (*gorgonia.Node, error) {
	if !d.reads.On {
		return nil, undeclared("the value that `on` names")
	}
	return d.values.On()
}

// Value implements [Values].
func (d *declared) Value(name string) (*gorgonia.Node, error) {
	if !slices.Contains(d.reads.Values, name) && !(d.reads.On && name == d.on) {
		return nil, undeclared(fmt.Sprintf("the value %q", name))
	}
	return d.values.Value(name)
}

// Teacher implements [Values].
func (d *declared) Teacher() (*gorgonia.Node, error) {
	if !d.reads.Teacher {
		return nil, undeclared("the teacher")
	}
	return d.values.Teacher()
}

// Images implements [Values].
func (d *declared) Images() (*gorgonia.Node, error) {
	if !d.reads.Images {
		return nil, undeclared("the images")
	}
	return d.values.Images()
}

// Shape implements [Values].
func (d *declared) Shape() ([]int, error) {
	if !d.reads.Images && !d.reads.Atoms {
		return nil, undeclared("the images")
	}
	return d.values.Shape()
}

// Labels implements [Values].
func (d *declared) Labels() (*gorgonia.Node, error) {
	if !d.reads.Labels {
		return nil, undeclared("the labels")
	}
	return d.values.Labels()
}

// Weights implements [Values].
func (d *declared) Weights() ([]*gorgonia.Node, error) {
	if d.reads.Per != Parameter {
		return nil, undeclared("parameters, and no images")
	}
	return d.values.Weights()
}

// Dictionary implements [Values].
func (d *declared) Dictionary() (*Dictionary, error) {
	if !d.reads.Atoms {
		return nil, undeclared("the atoms")
	}
	return d.values.Dictionary()
}

// Encoding implements [Values].
func (d *declared) Encoding() (*Encoding, error) {
	if !d.reads.Jacobian {
		return nil, undeclared("derivatives with respect to the images")
	}
	return d.values.Encoding()
}
