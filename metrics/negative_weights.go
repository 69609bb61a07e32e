package metrics

// NegativeWeights counts the atoms' values below zero; the bias does not count.
func NegativeWeights(atoms *Atoms) int {
	count := 0
	for _, v := range atoms.Values {
		if v < 0 {
			count++
		}
	}
	return count
}
