package folder

// Replaceable reports whether [Create] with force would put a new run in a place, provided that no other process works
// there.
func Replaceable(path string) bool {
	_, err := vacant(path, true)
	return err == nil
}
