// Command tessera trains, evaluates and uses the models that models.toml declares. Your own program with the same
// two lines, and imports of your parts, is the same command with these parts.
package main

import "tessera/apps/cli"

func main() { cli.Main() }
