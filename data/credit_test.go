package data

import (
	"math"
	"slices"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// creditOf loads applicants and returns, for each group, the shares of repaid loans by the label and by the truth, and the
// means and standard deviations of the values.
func creditOf(t *testing.T, edit func(*Credit)) (images *Images, count [2]int, label, truth [2]float64, mean, deviation [2][creditValues]float64) {
	t.Helper()
	e, _ := Registry.Lookup("credit")
	c := e.New().(*Credit)
	c.Count, c.Test = 20000, 10
	edit(c)
	set, err := c.Load(background, nil, Both)
	fatal.If(t, err)
	images = set.Train
	rows, groups, truths, labels := images.Float32(), images.Classes("group"), images.Classes("truth"), images.Labels()
	for i, g := range groups {
		count[g]++
		label[g] += float64(labels[i])
		truth[g] += float64(truths[i])
		for j := range creditValues {
			mean[g][j] += float64(rows[i*creditValues+j])
		}
	}
	for g, n := range count {
		label[g] /= float64(n)
		truth[g] /= float64(n)
		for j := range creditValues {
			mean[g][j] /= float64(n)
		}
	}
	for i, g := range groups {
		for j := range creditValues {
			deviation[g][j] += math.Pow(float64(rows[i*creditValues+j])-mean[g][j], 2) / float64(count[g])
		}
	}
	return images, count, label, truth, mean, deviation
}

// Every key causes the documented bias, and causes none if it has its neutral value.
func TestCreditHasTheBiasesThatItDocuments(t *testing.T) {
	near := func(what string, got, want, by float64) {
		t.Helper()
		expect.Near(t, got, want, by, what)
	}
	_, count, label, truth, mean, deviation := creditOf(t, func(c *Credit) {})
	near("share", float64(count[1])/20000, 0.3, 0.01)
	for j, want := range []float64{0.8, 0.8, 0.8, -3, -1.5 + 0.24, 0} {
		near("difference of the means", mean[0][j]-mean[1][j], want, 0.1)
	}
	for j, s := range []float64{0.5, 0.7, 0.9, 1, 1, 1} {
		own := []float64{1, 1, 1, 0, 0.09, 0}[j]
		a, b := s, s
		if j < 3 {
			b *= 2
		}
		near("variance of a", deviation[0][j], own+a*a, 0.1)
		near("variance of b", deviation[1][j], own+b*b, 0.15)
	}
	near("label bias", label[1]/truth[1], 0.9, 0.02)
	near("label bias of a", label[0], truth[0], 0)
	if truth[0]-truth[1] < 0.2 {
		t.Errorf("repaid: %v of a, %v of b", truth[0], truth[1])
	}
	_, count, label, truth, mean, deviation = creditOf(t, func(c *Credit) { c.Share, c.Gap, c.Proxy, c.Noise, c.LabelBias = 0.5, 0, 0, 0, 0 })
	near("share without a bias", float64(count[1])/20000, 0.5, 0.015)
	for j := range creditValues {
		near("means without a bias", mean[0][j], mean[1][j], 0.06)
		near("variances without a bias", deviation[0][j], deviation[1][j], 0.1)
	}
	near("labels without a bias", label[0], label[1], 0.02)
	near("labels without a bias", label[1], truth[1], 0)
}

func TestMoreApplicantsBeginWithTheSame(t *testing.T) {
	few, _, _, _, _, _ := creditOf(t, func(c *Credit) { c.Count = 50 })
	more, _, _, _, _, _ := creditOf(t, func(c *Credit) { c.Count = 80 })
	expect.Slice(t, few.Float32(), more.First(50).Float32(), "more applicants begin with other ones")
	expect.Slice(t, few.Classes("group"), more.First(50).Classes("group"), "more applicants begin with other ones")
	if c, ok := few.Column("group"); !ok || !slices.Equal(c.Names, []string{"a", "b"}) {
		t.Errorf("the column is %+v", c)
	}
}
