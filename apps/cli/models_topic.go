package cli

import (
	_ "embed"

	"github.com/spf13/cobra"
)

//go:embed models_topic.txt
var modelsText string

// modelsTopic is the help topic `tessera help models`; a command without a function is a topic.
func modelsTopic() *cobra.Command {
	return &cobra.Command{Use: "models", Short: "How models.toml declares models and sweeps", Long: modelsText}
}
