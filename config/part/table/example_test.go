package table_test

import (
	"fmt"

	"tessera/config/part"
	"tessera/config/part/table"
)

// Filter is the interface of the parts in this example.
type Filter interface{ Apply(x float64) float64 }

// Gain is a part that multiplies by a factor.
type Gain struct {
	By float64 `toml:"by" want:"> 0" doc:"factor"`
}

// Apply implements [Filter].
func (g *Gain) Apply(x float64) float64 { return g.By * x }

// Channel is the table [channel.NAME].
type Channel struct {
	Rate    int      `toml:"rate" want:"> 0" doc:"samples per second" required:"true"`
	Filters []Filter `toml:"filter" doc:"applied in this order"`
}

// A program reads its own tables. Its structs and a registry define the language.
func Example() {
	filters := part.New[Filter]("filter")
	filters.Register("gain", "y = by * x", func() Filter { return &Gain{By: 2} })
	language := &table.Language{Vocabularies: []*table.Vocabulary{table.Words("filters", filters, nil)}}

	root, found := table.Parse(table.NewSource("radio.toml", `
[channel.left]
rate = 44100
filter = ["gain", { kind = "gain", by = -1 }]
`))
	if err := table.Report(found); err != nil {
		fmt.Println(err)
		return
	}
	left := root.Child("channel").Child("left")
	d := &table.Decoder{Language: language, Subject: left.Subject()}
	var c Channel
	d.Decode(left, &c, "")
	fmt.Println(table.Report(d.Found))
	fmt.Println(c.Rate, c.Filters[0].Apply(1))
	// Output:
	// radio.toml:4:41: channel "left": filter[1] (gain): by: got -1, want a number > 0
	//     filter = ["gain", { kind = "gain", by = -1 }]
	//                                             ^^
	// 44100 2
}
