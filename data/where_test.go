package data

import (
	"fmt"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
	"tessera/internal/numeral"
)

// The rows are those of pandas' query, after pandas.to_numeric of the ages.
func TestWhereKeepsTheRowsForWhichItsConditionsHold(t *testing.T) {
	path := write(t, t.TempDir(), "cells.csv", "tissue,age,days in bed,x,y\nlung,30,3,1,2\nheart,,2,3,4\n lung ,18,,5,6\nliver,7,0,7,8\nlung,18.0,4,9,10\n-,90,1,11,12\n")
	for where, want := range map[string]string{
		"tissue = lung":                     "[1 5 9]",
		"tissue != lung":                    "[3 7 11]",
		"age >= 18":                         "[1 5 9 11]",
		"age>18":                            "[1 11]",
		"age < 18":                          "[7]",
		"age <= 18.":                        "[5 7 9]",
		"age = 18":                          "[5 9]",
		"age != 18":                         "[1 3 7 11]",
		"tissue in lung, liver":             "[1 5 7 9]",
		"age in 7, 90":                      "[7 11]",
		"tissue in lung,liver; age < 20":    "[5 7 9]",
		"tissue != lung, heart":             `no cell is "lung, heart", and != takes no list: want where = ["tissue != lung", "tissue != heart"]`,
		"tissue != spleen, skin":            "[1 3 5 7 9 11]",
		"tissue != lung and age > 3":        `has two conditions: want a list of them, such as where = ["tissue != lung", ...]`,
		"tissue in lung, heart and age > 3": `such as where = ["tissue in lung, heart", ...]`,
		"tissue = spleen":                   "has no row that meets the conditions of where (tissue = spleen)",
		"tisue = lung":                      `has no column "tisue", want "tissue", "age", "days in bed", "x", "y"; did you mean "tissue"?`,
		"tissue < 3":                        `line 2, column "tissue": got "lung", but where compares it with a number`,
		"tissue lung":                       `got "tissue lung", want conditions on columns, such as`,
		"age < old":                         `got "age < old", want conditions on columns`,
		"days in bed > 2":                   "[1 9]",
		"days in bed in 2, 4":               "[3 9]",
		"tissue = lung; tissue = heart; x=": `got " x=", want conditions`,
	} {
		f := &Files{Kind: "csv", File: path, Columns: ColumnNames{ImagesColumn: {"x", "y"}}}
		list := lists.Map(strings.Split(where, ";"), func(one string) any { return one })
		err := f.Where.FromTOML(list)
		var set *Set
		if err == nil {
			set, err = f.Load(t.Context(), nil, Both)
		}
		if err != nil {
			expect.Contains(t, err.Error(), want, where, err)
			continue
		}
		var got []float32
		for i := range set.Train.Len() {
			row := set.Train.First(i + 1).Float32()
			got = append(got, row[len(row)-2])
		}
		expect.Equal(t, fmt.Sprint(got), want, where)
		expect.Equal(t, fmt.Sprint(set.Kept), fmt.Sprintf("[%s of 6, where %s]", numeral.Of(len(got), "row"), strings.Join(f.Where, " and ")), where)
	}
}

// A text with a comma, and one with a sign, may be those of a cell.
func TestWhereTakesTextsWithCommas(t *testing.T) {
	f := &Files{Kind: "csv", File: write(t, t.TempDir(), "x.csv", "name,a,b\n\"x, y\",1,2\nx,3,4\n"), Where: Where{"name != x, y"}, Columns: ColumnNames{ImagesColumn: {"a", "b"}}}
	if set, err := f.Load(t.Context(), nil, Both); err != nil || fmt.Sprint(set.Train.Float32()) != "[3 4]" {
		t.Errorf("got %v, %v", set, err)
	}
}

// Identifiers of 19 digits, of which float64 rounds thousands to one number, are compared exactly.
func TestWhereComparesLongIdentifiersExactly(t *testing.T) {
	path := textFile(t, "ids.csv", "id,x\n9007199254740992,1\n9007199254740993,2\n18446744073709551614,3\n18446744073709551615,4\n9.007199254740992e15,5\n-9007199254740993,6\n")
	for where, want := range map[string][]float32{
		"id = 9007199254740993":        {2, 5}, // a rounded number may be it
		"id != 18446744073709551615":   {1, 2, 3, 5, 6},
		"id > 18446744073709551614":    {4},
		"id <= 9007199254740992":       {1, 5, 6},
		"id in -9007199254740993, 184": {6},
	} {
		set, err := Load(t.Context(), &Files{Kind: "csv", File: path, Columns: ColumnNames{ImagesColumn: {"x"}}, Where: Where{where}}, Dirs{}, Both)
		fatal.If(t, err, where)
		expect.Slice(t, set.Train.Float32(), want, where)
	}
}
