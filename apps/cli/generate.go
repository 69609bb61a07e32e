package cli

import (
	"errors"
	"fmt"
	"slices"

	"tessera"
	"tessera/apps/show/doc"
	"tessera/internal/coder"
	"tessera/internal/numeral"
)

func init() {
	Commands.Register("generate", "Continue a text, token by token", func() Command {
		return &generateCommand{runFlags: forRuns(), Count: 100, Temperature: 1, TopP: 1, Seed: 1}
	})
}

type generateCommand struct {
	Folder string `arg:"RUN" is:"folder" doc:"the folder of a run"`
	runFlags
	jsonFlag
	Prompt      string   `flag:"prompt,p" required:"true" doc:"begin of the text"`
	Count       int      `flag:"tokens,n" want:"> 0" doc:"largest number of tokens to draw; the text may end before"`
	Temperature float64  `flag:"temperature" want:">= 0" doc:"divides the logits: small values take likely tokens, 0 the most likely"`
	TopK        int      `flag:"top-k" want:">= 0" doc:"draw among this many most likely tokens; 0 for all"`
	TopP        float64  `flag:"top-p" want:"in (0,1]" doc:"draw among the most likely tokens with this sum of probabilities"`
	Seed        uint64   `flag:"seed" doc:"seed of the drawn tokens"`
	Stop        []string `flag:"stop" each:"true" doc:"end before this text, if it is drawn; may be repeated"`
}

func (f *generateCommand) Help() Help {
	return Help{
		Long: "Continue a text by a model with the loss next_token: each token is drawn from what the model predicts behind those before it, printed at once, and read again. The " +
			"model sees the last tokens, at most as many as a sample has: when there are more, the older half is left out. If its layers are token-wise or have causal = true, " +
			"keys and values of earlier tokens are kept and only the new token is computed. Equal seeds give equal texts. The prompt is divided by the vocabulary of the run.",
		Examples: []string{"tessera generate runs/gpt --prompt Adam", "tessera generate runs/gpt --prompt And -n 200 --temperature 0.7 --top-k 20 --seed 2"},
	}
}

func (f *generateCommand) Do(cmd *Call) error {
	r, err := f.open(f.Folder)
	if err != nil {
		return err
	}
	defer r.Close()
	if r.Tokens() == nil {
		return usagef("generate: %s: %w", r.Path, tessera.ErrNoLanguage)
	}
	if slices.Contains(f.Stop, "") {
		return usagef("generate: --stop: the text is empty")
	}
	list := r.Tokens().Encode(f.Prompt)
	begin, text := len(list), r.Tokens().Decode(list)
	unknown := 0
	for _, token := range list {
		if int(token) >= r.Tokens().Texts() {
			unknown++
		}
	}
	if unknown > 0 {
		warn(cmd, fmt.Sprintf("%d of %s of the prompt are not in the vocabulary: the model reads <unknown>", unknown, numeral.Of(begin, "token")))
	}
	how := coder.Sampling{Temperature: f.Temperature, TopK: f.TopK, TopP: f.TopP, Seed: f.Seed}
	unprinted := text
	drawn, err := r.ContinueText(cmd.Context(), list, f.Count, how, f.Stop, func(piece string) error {
		text, piece, unprinted = text+piece, unprinted+piece, ""
		if f.JSON {
			return nil
		}
		_, err := fmt.Fprint(cmd.OutOrStdout(), piece)
		return err
	})
	switch {
	case errors.Is(err, tessera.ErrNoLanguage), begin == 0:
		return usageError{err}
	case err != nil:
		return err
	case !f.JSON:
		_, err = fmt.Fprintln(cmd.OutOrStdout(), unprinted) // the prompt, if nothing was drawn
		return err
	}
	d := &doc.Document{}
	d.Add(&doc.Facts{Facts: []doc.Fact{{Key: "text", Title: "text", Value: text}, {Key: "prompt", Title: "tokens of the prompt", Value: begin},
		{Key: "tokens", Title: "drawn tokens", Value: drawn}}})
	return cmd.Show(d, f.JSON)
}
