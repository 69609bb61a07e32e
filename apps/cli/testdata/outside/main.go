// Command outside is the command tessera with the parts of another module.
package main

import (
	_ "example.org/outside/parts"
	"tessera/apps/cli"
)

func main() { cli.Main() }
