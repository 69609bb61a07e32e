# The targets for developers and CI.

GO ?= go
# A count, not a duration: go test can fail without reason at the end of a duration (go.dev/issue/75804).
FUZZTIME ?= 10000x
# Packages with matrix products, which OpenBLAS may compute.
NUMERIC = ./graph/... ./layers ./losses ./metrics ./internal/train
# Tests of what is written and read back, whatever computed it.
FILES = Kill|Interrupt|Resum
ENCODES ?= 20000
BLAS ?= $(firstword $(wildcard /usr/lib/*/openblas-pthread/libopenblas.so.0))
# Epochs of a trial of chaos: the sweep has to last longer than the kills. Take more on a faster machine.
CHAOS_EPOCHS ?= 3500
# Where same-bytes keeps the results of BASE. Several checkouts may share one folder.
CACHE ?= .same-bytes
# Every package that starts a goroutine, by itself or through package team, or uses unsafe.
CONCURRENT = $(sort $(dir $(shell grep -rlE --include='*.go' --exclude='*_test.go' --exclude-dir=testdata --exclude-dir=tools \
	'^[[:space:]]*go [[:alpha:][:punct:]]|[.]Go[[:punct:]]func|team[.](For|New)[[:punct:]]|^[[:space:]]*"unsafe"$$' .)))

PYTHON ?= /usr/bin/python3

# Versions of the linters, built from the module proxy.
GOLANGCI ?= v2.15.0
GOVULNCHECK ?= v1.9.0

.PHONY: models gallery unseen arm64 run test test-tools python check format vet staticcheck lint vulnerabilities release module race fuzz portable same-bytes bench bench-peers golden mpi kill-test kill-kinds slurm chaos parts encode-load serve-soak bench-serve reports identifiability

run: ## train the quick start
	$(GO) run ./apps/tessera train swimmer-parts

test: ## the README's test command; -w leaves out what debuggers read, so that linking takes half the time
	$(GO) test -timeout 30m -ldflags=-w ./...

test-tools: ## the tools for developers, a module of their own
	$(GO) -C internal/tools vet ./...
	$(GO) -C internal/tools test ./...

check: format vet staticcheck lint vulnerabilities test test-tools race fuzz portable ## everything that must pass before a change is merged

format:
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt -w on these"; exit 1; }

vet:
	$(GO) vet ./...

staticcheck:
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

# Linters of golangci-lint that staticcheck does not have; .golangci.yml chooses them. Both tools are built from the module proxy.
lint: ## golangci-lint, if it can be fetched
	@$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI) version >/dev/null 2>&1 || { echo "skipped: golangci-lint could not be fetched"; exit 0; }; \
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI) run --config .ci/golangci.yml

vulnerabilities: ## govulncheck, if the Go vulnerability database can be reached
	@curl -sfo /dev/null -m 10 https://vuln.go.dev/index/modules.json || { echo "skipped: the Go vulnerability database cannot be reached"; exit 0; }; \
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK) ./...

race: ## with checkptr, for the packages that share memory or use unsafe; needs a C compiler
	$(GO) test -race -short -skip '$(FILES)' $(CONCURRENT)
	$(GO) test -race -short -run 'ALearnerInterruptedAnywhere/every_step|AllHooksTogether|ASearchInterruptedInAnyBatch' ./internal/train

# GUIDED= fuzzes without coverage guidance, from the packages that the tests have compiled.
GUIDED ?= -fuzz .
fuzz: ## FUZZTIME inputs for every fuzz test, of each package from one binary
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && cache=$$($(GO) env GOCACHE)/fuzz && \
	for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n 1 dirname | sort -u); do \
		$(GO) test -c $(GUIDED) -o "$$folder/fuzz.test" $$package && path=$$($(GO) list $$package) || exit 1; \
		for name in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+).*/\1/p' $$package/*_test.go); do \
			echo "$$path $$name"; \
			(cd $$package && "$$folder/fuzz.test" -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $(FUZZTIME) -test.fuzzcachedir "$$cache/$$path") || exit 1; \
		done; \
	done

portable: ## the numeric tests without assembly, and with OpenBLAS if Debian's build is installed or BLAS names one
	TESSERA_BLAS=none TESSERA_SIMD=none $(GO) test -short ./graph/... ./internal/engine
	@if [ -n "$(BLAS)" ]; then echo "TESSERA_BLAS=$(BLAS) $(GO) test -short -skip '$(FILES)' ./internal/engine/kernel $(NUMERIC)"; \
	TESSERA_BLAS=$(BLAS) $(GO) test -short -skip '$(FILES)' ./internal/engine/kernel $(NUMERIC); \
	else echo "skipped: no OpenBLAS found; make portable BLAS=PATH names one"; fi

# Packages whose tests run as programs for arm64. The tag leaves out the loading of libraries, for which the emulator would need those of arm64.
EMULATED ?= ./internal/engine/... ./graph/... ./layers ./internal/train ./internal/machine
arm64: ## the tests of kernels, engine, graph, layers and training as programs for arm64, emulated; takes an hour; needs Debian's qemu-user
	GOARCH=arm64 CGO_ENABLED=0 $(GO) test -tags static -p 1 -timeout 2h -exec qemu-aarch64 $(ARGUMENTS) $(EMULATED)

same-bytes: ## compare the results of shipped models and sweeps at the commit BASE and now; ONLY=GLOB restricts them; TESSERA_DATA is the data folder
	$(GO) -C internal/tools run -trimpath ./samebytes --base "$(BASE)" --only "$(ONLY)" --cache "$(abspath $(CACHE))"

bench:
	$(GO) test -run '^$$' -bench . -benchmem -count 6 ./...

bench-peers: ## training steps compared with PyTorch, NMF and SVM compared with scikit-learn, in alternating rounds; TESSERA_DATA is the folder that holds fashion-mnist/
	$(GO) -C internal/tools run ./bench

# The page of parts that are known, over many data sets: its runs and results are kept in IDENTIFIABILITY.
IDENTIFIABILITY ?= .identifiability
identifiability: ## the tables of docs/reproduction/identifiability.md; needs scikit-learn; takes hours
	@mkdir -p $(IDENTIFIABILITY)
	$(GO) build -o $(IDENTIFIABILITY)/tessera ./apps/tessera
	$(GO) -C internal/tools build -o $(abspath $(IDENTIFIABILITY))/planted ./planted
	python3 internal/tools/bench/identifiability.py $(abspath $(IDENTIFIABILITY)/tessera) $(abspath $(IDENTIFIABILITY)/planted) $(abspath $(IDENTIFIABILITY))

# The reports of docs/reports: a run of parts and a sweep, trained in REPORTS.
REPORTS ?= .reports
reports: ## train a run and a sweep and write docs/reports; TESSERA_DATA is the folder that holds fashion-mnist/
	mkdir -p $(REPORTS) && $(GO) build -o $(REPORTS)/tessera ./apps/tessera
	cd $(REPORTS) && ./tessera train parts --threads 1 --out runs/parts --force && ./tessera sweep limbs -f $(CURDIR)/docs/reports/limbs.toml
	cd $(REPORTS) && ./tessera report runs/parts -o $(CURDIR)/docs/reports/parts.html && ./tessera report sweeps/limbs -o $(CURDIR)/docs/reports/limbs.html

golden: ## write the golden files again; check the diff
	$(GO) test ./docs ./config ./apps/show/figures ./internal/sweep/scheduler ./apps/internal/study -update

kill-test: ## kill -9 at 20 random moments, resume, compare bytes
	$(GO) test ./apps/cli -run 'Kill' -kills 20 -v -count 1

kill-kinds: ## kill -9 every kind of model (columns, published values, players, ...) at 10 random moments, resume, compare bytes
	$(GO) test ./apps/cli -run EveryKindSurvivesKills -kill-kinds 10 -v -count 1

# The launchers that make mpi tests with.
MPIRUN ?= mpirun.openmpi mpirun.mpich
mpi: ## distributed training by real processes: sums, 20 losses, bytes, kills, stops, a full disk; about 5 minutes per launcher
	for launcher in $(MPIRUN); do \
		$(GO) test ./internal/parallel/mpi -mpirun $$launcher -v -count 1 && \
		$(GO) test ./apps/cli -mpirun $$launcher -run 'SeveralProcesses|KilledProcess|StoppedProcess|FullDiskOfRank|AnInterruptEnds|ReportedOnce|WithoutALauncher' -v -count 1 || exit 1; \
	done

python: ## the package in python/: tests, scikit-learn's check_estimator, the notebook; needs Debian's python3-sklearn, python3-matplotlib, python3-nbconvert and python3-ipykernel
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && $(GO) build -o "$$folder/tessera" ./apps/tessera && \
	TESSERA="$$folder/tessera" $(PYTHON) -m unittest discover -s python/tests -v && \
	TESSERA="$$folder/tessera" PYTHONPATH=python $(PYTHON) -m nbconvert --to notebook --execute --output "$$folder/parts.ipynb" python/parts.ipynb

encode-load: ## 64 goroutines encode ENCODES times each, compared bit for bit with serial codes; then the time of a single image
	$(GO) test ./internal/coder -run ManyGoroutinesGetTheCodes -encodes $(ENCODES) -timeout 2h -v -count 1
	$(GO) test ./internal/coder -run '^$$' -bench Encoder -count 6

slurm: ## an array of 8 trials on a one-node cluster of Slurm, with tasks that are stopped, requeued and killed; needs Debian's slurmctld, slurmd, slurm-client and munge
	$(GO) build -o tessera ./apps/tessera
	internal/sweep/scheduler/testdata/slurm.sh ./tessera

chaos: ## a sweep on workers under 60 SIGKILLs, cut connections, a full disk and a wrong clock; 10,000 empty trials through the queue
	$(GO) -C internal/tools run ./chaos --trials 40 --kills 60 --epochs $(CHAOS_EPOCHS)
	$(GO) test ./internal/sweep/fleet -run EmptyTrials -empty 10000 -v -count 1

parts: ## the swimmer's parts for seeds 1 to 5
	$(GO) test ./apps/cli -run 'Parts' -seeds 5 -v -count 1

serve-soak: ## 10 minutes of load and of clients that fail, then 10 minutes at the highest rate with the memory printed; needs wrk; RUN is a run on images of 28x28
	$(GO) test ./apps/serve -run 'Soak$$' -soak 10m -timeout 30m -v -count 1
	$(GO) build -o tessera ./apps/tessera
	ENCODING=binary ROUNDS=10 SECONDS_EACH=60 internal/tools/bench/serve.sh ./tessera "$(abspath $(RUN))"

bench-serve: ## tessera serve beside onnxruntime-node, by wrk; RUN, ONNX: its encoder as ONNX, MODULES: a folder after `npm install --ignore-scripts onnxruntime-node@1.30.0`
	$(GO) build -o tessera ./apps/tessera
	for encoding in json binary; do \
		ENCODING=$$encoding internal/tools/bench/serve.sh ./tessera "$(abspath $(RUN))" "$(abspath $(ONNX))" "$(abspath $(MODULES))" || exit 1; \
	done

release: ## binaries for linux, darwin and windows on amd64 and arm64, with checksums and a list of what was run, in dist/
	$(GO) -C internal/tools run ./release --out $(CURDIR)/dist

GALLERY ?= .gallery
gallery: ## train the models of docs/gallery.md for a short time and write its pages; needs Pillow; TESSERA_DATA is the folder that holds fashion-mnist/ and mnist/
	@mkdir -p $(GALLERY)
	$(GO) build -o $(GALLERY)/tessera ./apps/tessera
	$(PYTHON) internal/tools/gallery/gallery.py $(GALLERY)/tessera $(GALLERY)

unseen: ## the table of docs/reproduction/unseen.csv; needs scikit-learn; takes an hour
	@mkdir -p .unseen
	$(GO) build -o .unseen/tessera ./apps/tessera
	$(PYTHON) internal/tools/bench/unseen.py .unseen/tessera .unseen && cp .unseen/unseen.csv docs/reproduction/

# The models of a release.
RELEASE ?= release
MODELS ?= swimmer-parts bars-parts parts-relative parts-splitting parts-unrolled sparse-nmf-hals pca classifier vit-classifier vae conv-vae diffusion
models: ## train the models of a release and pack them with descriptions and checksums into RELEASE; TESSERA_DATA is the folder that holds fashion-mnist/; takes hours
	@mkdir -p $(RELEASE)
	$(GO) build -o $(RELEASE)/.tessera ./apps/tessera
	cd $(RELEASE) && for m in $(MODELS); do ./.tessera train $$m --chain --preview none || exit; done
	cd $(RELEASE) && ./.tessera pack $(MODELS:%=runs/%) -o . --licence "$(LICENCE)" --limits "$(LIMITS)"

LICENCE ?= Apache-2.0
LIMITS ?= Trained on grey images of 28 x 28 pixels or smaller; a start for images of their kind, not for others.

module: ## give the module another path: make module MODULE=example.org/tessera
	@[ -n "$(MODULE)" ] || { echo "make module MODULE=example.org/tessera"; exit 2; }
	old=$$($(GO) list -m) && \
	git ls-files -z '*.go' | xargs -0 sed -i -E "s#([\"[])$$old/#\1$(MODULE)/#g; s#^(([[:space:]]*|import )([_a-z]+ )?)\"$$old\"\$$#\1\"$(MODULE)\"#" && \
	git ls-files -z '*go.mod' | xargs -0 sed -i -E "s#(^|[[:space:]])$$old( |/|\$$)#\1$(MODULE)\2#g" && \
	git ls-files -z '*.md' | xargs -0 sed -i -E "s#((\"|\`)$$old/(apps|losses|ops)|-require=$$old@|-replace=$$old=)#<\1>#g; s#<(\"|\`|-[a-z]+=)$$old([/@=a-z]*)>#\1$(MODULE)\2#g" && \
	gofmt -w $$(git ls-files '*.go') && $(GO) vet ./... && $(GO) -C internal/tools vet ./...
