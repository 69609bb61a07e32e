package cli

import (
	"fmt"
	"strings"
	"testing"
)

// A table with decimal commas and names of columns that are no keys of TOML: messages have the user's names, and numbers of new files with decimal
// points, or the reverse, are said to be these.
func TestMessagesHaveTheColumnsOfTheUser(t *testing.T) {
	for _, c := range []struct{ file, sign, other, was, is string }{{"komma.csv", ",", ".", "comma", "point"}, {"punkt.csv", ".", ",", "point", "comma"}} {
		t.Run(c.file, func(t *testing.T) {
			b := newBench(t)
			rows := "Wohnfläche;Straße (Lage);Kaufpreis\n"
			for i := range 60 {
				rows += fmt.Sprintf("%d%s%d;%s;%d\n", 20+i%31, c.sign, i%10, []string{"Nord", "Süd", ""}[i%3], 900+10*(i%31))
			}
			b.write(c.file, rows)
			name := strings.TrimSuffix(c.file, ".csv")
			b.shipped()
			b.must(0, "init", c.file, "--target", "Kaufpreis")
			b.must(0, "train", name+"-numbers", "--epochs", "1")
			b.write("neu.csv", fmt.Sprintf("Wohnfläche;Straße (Lage)\n35%s5;West\n", c.sign))
			b.contains("an unknown text", b.must(0, "predict", "runs/"+name+"-numbers", "--in", "neu.csv").stderr, `neu.csv: column "Straße (Lage)": line 2 has "West", which no training sample has (Nord, Süd)`)
			b.write("neu.csv", fmt.Sprintf("Wohnfläche;Straße (Lage)\n35%s5;West\n", c.other))
			b.contains("another sign", b.must(4, "predict", "runs/"+name+"-numbers", "--in", "neu.csv").stderr,
				fmt.Sprintf(`column "Wohnfläche": got "35%s5", want a finite number; numbers of this file have a %s before their fraction, those of the training a %s: write them as in the training`, c.other, c.is, c.was))
		})
	}
}
