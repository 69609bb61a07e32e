package train

import (
	"encoding/json"

	"tessera/config"
)

// columnsText returns the metadata entry for the columns that a model reads, "" if there are none.
func columnsText(spec *config.Model) string {
	list := spec.Columns()
	if len(list) == 0 {
		return ""
	}
	text, _ := json.Marshal(list) // texts and numbers cannot fail
	return string(text)
}
