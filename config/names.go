package config

import "fmt"

// Names is a list of names of values, terms or parameters. In models.toml a single name needs no brackets.
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
			return fmt.Errorf("got %#v, want a name or an array of names", one)
		}
		*n = append(*n, name)
	}
	if len(*n) == 0 {
		return fmt.Errorf("got no names, want a name or an array of names")
	}
	return nil
}

// TOML returns the value from which [Names.FromTOML] restores the names. An empty list is not written.
func (n Names) TOML() any {
	if len(n) == 1 {
		return n[0]
	}
	return []string(n)
}
