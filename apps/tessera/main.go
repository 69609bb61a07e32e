// Command tessera trains, evaluates and uses the models that models.toml declares. A program of one's own with the same
// two lines, and imports of one's own parts, is the same command with these parts.
package main

import "tessera/cli"

func main() { cli.Main() }
