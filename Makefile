# The same few targets for people and for CI.

GO ?= go
# A count, not a duration: at the end of a duration go test can fail by itself (go.dev/issue/75804).
FUZZTIME ?= 10000x
NUMERIC = ./graph/... ./layers ./losses ./metrics ./morph ./optim ./constraints ./train/...
# Where same-bytes keeps the results of BASE. Several checkouts may share one folder.
CACHE ?= .same-bytes
CONCURRENT = ./data ./graph/engine ./graph/engine/kernel ./internal/parallel ./metrics ./morph ./train/...

.PHONY: run test check format vet staticcheck race fuzz portable same-bytes bench bench-peers golden kill-test parts

run: ## train the quick start
	$(GO) run ./apps/tessera train swimmer-parts

test: ## the README's test command
	$(GO) test ./...

check: format vet staticcheck test race fuzz portable ## everything that must pass before a change is kept

format:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }

vet:
	$(GO) vet ./...

staticcheck:
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

race: ## with checkptr, on the rooms that share memory or use unsafe; needs a C compiler
	$(GO) test -race -short $(CONCURRENT)

fuzz: ## FUZZTIME inputs for every fuzz test
	@$(GO) test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, names[i]; n = 0 }' | \
	while read package name; do \
		echo "$$package $$name"; $(GO) test $$package -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) || exit 1; \
	done

portable: ## the numbers without OpenBLAS, then without assembly too
	TESSERA_BLAS=none $(GO) test $(NUMERIC)
	TESSERA_BLAS=none TESSERA_SIMD=none $(GO) test ./graph/...

same-bytes: ## what shipped models and sweeps give at the commit BASE and now; ONLY=GLOB restricts it; TESSERA_DATA says where the data are
	$(GO) run -trimpath ./bench/samebytes --base "$(BASE)" --only "$(ONLY)" --cache "$(CACHE)"

bench:
	$(GO) test -run '^$$' -bench . -benchmem -count 6 ./...

bench-peers: ## training steps beside PyTorch's, NMF and SVM beside scikit-learn's, in turn; TESSERA_DATA says where fashion-mnist/ is
	$(GO) run ./bench

golden: ## write the golden files anew; look at what changes
	$(GO) test . ./config ./report ./study -update

kill-test: ## kill -9 at 20 random moments, resume, compare bytes
	$(GO) test ./apps/tessera -run 'Kill' -kills 20 -v -count 1

parts: ## the swimmer's parts for seeds 1 to 5
	$(GO) test ./apps/tessera -run 'Parts' -seeds 5 -v -count 1
