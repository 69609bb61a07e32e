// Command outside is tessera with the parts of another module.
package main

import (
	_ "example.org/outside/parts"
	"tessera/apps/cli"
)

func main() { cli.Main() }
