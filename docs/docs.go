// Package docs contains the documentation of Tessera, so that the installed command can write it.
package docs

import "embed"

// Pages contains the Markdown pages of this folder.
//
//go:embed *.md
var Pages embed.FS
