// Command planted writes the images and the true parts of a generated data set as arrays, for other programs:
//
//	planted '{ name = "shapes", density = 0.5 }' OUT
//
// writes OUT.images.npy and OUT.parts.npy, of shape (n, height, width).
package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"tessera/config"
	"tessera/data"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: planted DATASET OUT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

// write generates the data set that a TOML value declares, and writes it.
func write(dataset, out string) error {
	file, err := config.Load("planted", []byte("[model.m]\ndataset = "+dataset+"\nencoder = [{ kind = \"dense\", units = 1 }]\n"))
	if err != nil {
		return err
	}
	model, err := file.Model("m")
	if err != nil {
		return err
	}
	set, err := data.Load(context.Background(), model.Dataset.Source, nil, data.Both)
	if err != nil {
		return err
	}
	if set.Parts == nil {
		return fmt.Errorf("%s: its parts are not known", set.Name)
	}
	if err := data.WriteRows(out+".images.npy", "", set.Shape, set.Train.Float32(), data.Rows{}); err != nil {
		return err
	}
	return data.WriteRows(out+".parts.npy", "", set.Shape, slices.Concat(set.Parts...), data.Rows{})
}
