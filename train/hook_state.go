package train

import (
	"encoding/json"
	"strings"

	"tessera/hooks"
	"tessera/train/checkpoint"
)

// hookPrefix begins the metadata of a hook's record, "hook/NAME", and its tensors, "hook/NAME/...".
const hookPrefix = "hook/"

// save adds what the hooks keep to a state.
func (h around) save(state *checkpoint.File) error {
	for _, a := range h {
		if a.Save == nil {
			continue
		}
		var s hooks.State
		if err := a.call(func() error { a.Save(&s); return nil }); err != nil {
			return err
		}
		if s.Record != nil {
			state.Metadata[hookPrefix+a.name] = string(s.Record)
		}
		for _, t := range s.Tensors {
			state.Tensors = append(state.Tensors, checkpoint.Tensor{Name: hookPrefix + a.name + "/" + t.Name, Shape: t.Shape, Data: t.Values})
		}
	}
	return nil
}

// restore gives it back to them.
func (h around) restore(from *stored) error {
	for _, a := range h {
		if a.Restore == nil {
			continue
		}
		s := stateOfHook(from.file, a.name)
		if err := a.call(func() error { return a.Restore(s) }); err != nil {
			return checkpoint.Mismatchf(from.path, "does not match its model: %v", err)
		}
	}
	return nil
}

// stateOfHook returns what a checkpoint holds of a hook.
func stateOfHook(f *checkpoint.File, name string) *hooks.State {
	s := &hooks.State{}
	if record, ok := f.Metadata[hookPrefix+name]; ok {
		s.Record = json.RawMessage(record)
	}
	for _, t := range f.Tensors {
		if rest, ok := strings.CutPrefix(t.Name, hookPrefix+name+"/"); ok {
			s.Put(rest, t.Shape, t.Data)
		}
	}
	return s
}

// renamed gives the names of today to what a state of an earlier version holds of averages, pruned weights and the best epoch.
func renamed(f *checkpoint.File) {
	for i, t := range f.Tensors {
		rest, pruned := strings.CutPrefix(t.Name, "pruned/")
		phase, path, _ := strings.Cut(rest, "/")
		switch {
		case pruned:
			f.Tensors[i].Name = hookPrefix + "prune." + phase + "/" + path
		case strings.HasPrefix(t.Name, "average/"):
			f.Tensors[i].Name = hookPrefix + t.Name
		case strings.HasPrefix(t.Name, "best/"):
			f.Tensors[i].Name = hookPrefix + "early_stopping/" + strings.TrimPrefix(t.Name, "best/")
		}
	}
	var old struct{ Best json.RawMessage }
	if json.Unmarshal([]byte(f.Metadata[progressKey]), &old) == nil && old.Best != nil {
		f.Metadata[hookPrefix+"early_stopping"] = string(old.Best)
	}
}
