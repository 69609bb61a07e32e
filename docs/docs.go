// Package docs contains the documentation of Tessera, so that the installed command can write it, and the declarations of its
// pages, so that the command can train them.
package docs

import "embed"

// Pages contains the Markdown pages of this folder and of the guide.
//
//go:embed *.md guide/*.md
var Pages embed.FS

// Declarations contains the files of models and sweeps of pages that train models which are not shipped.
//
//go:embed reproduction/*.toml
var Declarations embed.FS
