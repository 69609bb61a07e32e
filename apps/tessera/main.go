// Command tessera trains, evaluates and uses the models that models.toml declares. A program with the same two lines, and with
// imports of your own parts, is the same command including these parts.
package main

import "tessera/apps/cli"

func main() { cli.Main() }
