package metrics

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestPerClassEqualsPlainLoops(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	c, s := newHeaded(r, 4, "class"), labelledSample(r, batchSize+9, 4)
	s.Names = map[string][]string{"labels": {"coat", "shirt"}}
	rows, classes := labelledRows(t, c, s, "class")
	got := ofHead(t, c, s, metricOf("per_class"))
	table := got.Tables[0]
	var precisions, recalls []float64
	for class, name := range []string{"coat", "shirt", "2", "3"} {
		var count, predicted, right float64
		for i, row := range rows {
			is, says := classes[i] == class, slices.Index(row, slices.Max(row)) == class
			if is {
				count++
			}
			if says {
				predicted++
			}
			if is && says {
				right++
			}
		}
		precisions, recalls = append(precisions, right/predicted), append(recalls, right/count)
		for column, want := range map[string]float64{"count": count, "precision": right / predicted, "recall": right / count} {
			if v, _ := table.Number(name, column); v != want {
				t.Errorf("%s of %s: got %v, want %v", column, name, v, want)
			}
		}
	}
	close6(t, "macro_precision", number(t, got, "macro_precision"), mean(precisions, 4))
	close6(t, "macro_recall", number(t, got, "macro_recall"), mean(recalls, 4))
	close6(t, "least_recall", number(t, got, "least_recall"), slices.Min(recalls))
}

// Notes name the class without images and the class that is never predicted. Their numbers are not applicable, and the means
// ignore them.
func TestPerClassSaysWhatIsNotThere(t *testing.T) {
	m, err := metricOf("per_class").Start(&Subject{})
	fatal.If(t, err)
	fatal.If(t, m.Add(&Batch{Logits: []float32{1, 0, 0, 1, 0, 0, 0, 1, 0}, Labels: []int{0, 1, -1}}))
	values, _ := m.Values(t.Context())
	if values[0].Number != 0.5 || values[1].Number != 0.5 || values[2].Number != 0 {
		t.Errorf("got %+v", values)
	}
	table := m.(Tabled).Tables()[0]
	if v, ok := table.Number("2", "recall"); ok || !math.IsNaN(v) {
		t.Errorf("recall of a class without images: %v", v)
	}
	text, err := json.Marshal(table)
	fatal.If(t, err)
	want := `{"rows":[{"class":"0","count":1,"precision":0.5,"recall":1},{"class":"1","count":1,"precision":null,"recall":0},` +
		`{"class":"2","count":0,"precision":null,"recall":null}],"notes":["1 of 3 classes have no samples here: they have no recall",` +
		`"2 of 3 classes are never predicted: they have no precision"]}`
	expect.Equal(t, string(text), want)
}

func TestTablesOfTwoHeadsHaveTheirNames(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	got := ofHead(t, newHeaded(r, 3, "class", "other"), labelledSample(r, 60, 3), metricOf("per_class"))
	text, err := json.Marshal(got)
	if err != nil || !strings.Contains(string(text), `"other.classes":{"rows"`) || !strings.Contains(string(text), `"class.classes":{"rows"`) {
		t.Errorf("%v: %s", err, text)
	}
	var back Result
	if err := json.Unmarshal(text, &back); err != nil || len(back.Values) != len(got.Values) {
		t.Errorf("%v: read back %+v", err, back.Values)
	}
}
