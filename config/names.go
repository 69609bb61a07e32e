package config

import "fmt"

// Names are the names of values: in models.toml one name, or a list of them.
type Names []string

// FromTOML sets the names from a TOML value: a string, or an array of strings.
func (n *Names) FromTOML(value any) error {
	*n = nil
	list, isList := value.([]any)
	if !isList {
		list = []any{value}
	}
	for _, one := range list {
		name, ok := one.(string)
		if !ok || name == "" {
			return fmt.Errorf("got %v, want the name of a value or an array of names", one)
		}
		*n = append(*n, name)
	}
	if len(*n) == 0 {
		return fmt.Errorf("got no names, want the name of a value or an array of names")
	}
	return nil
}

// TOML returns the value that [Names.FromTOML] reads back; for no names a value that is not written.
func (n Names) TOML() any {
	if len(n) == 1 {
		return n[0]
	}
	return []string(n)
}
