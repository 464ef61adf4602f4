# Fulmar. `make help` lists the targets. Go, make, a C compiler (for the race
# detector) and Python 3 must be installed; everything else goes into folders
# that git ignores: bin, .venv, .cache.

GO     ?= go
PYTHON ?= python3
# How long `make fuzz` runs each target; which ones, as a regular expression that
# matches "folder FuzzName"; and whether their time goes into docs/fuzzing.md.
TIME    ?= 30s
TARGETS ?=
LEDGER  ?=

# Absolute, because the commands below run inside nested modules.
ROOT   := $(CURDIR)
VENV   := $(ROOT)/.venv
VENV_PYTHON := $(VENV)/bin/python
NGINX  := $(or $(shell command -v nginx),$(ROOT)/.cache/nginx/usr/sbin/nginx)
SSLYZE := $(ROOT)/.cache/sslyze/bin/sslyze
# Where internal/testservers looks for them.
ETCD := $(or $(shell command -v etcd),$(ROOT)/.cache/etcd/usr/bin/etcd)
ZOOKEEPER := $(or $(wildcard /usr/share/java/zookeeper.jar),$(ROOT)/.cache/zookeeper/usr/share/java/zookeeper.jar)
NETTY := $(or $(wildcard /usr/share/java/netty-common.jar),$(ROOT)/.cache/netty/usr/share/java/netty-common.jar)

# Workspaces would hide a missing replace directive.
export GOWORK := off

.PHONY: build
build: bin/fulmar ## Compile the framework, and the command line tool into bin/
	$(GO) build ./...

.PHONY: demo
demo: bin/kitex-shop $(VENV)/ready ## From an IDL file to served calls, from Go, Python and Kitex
	@$(MAKE) --no-print-directory generate GENERATED_MODULES="examples/orders examples/gateway examples/fleet examples/quotes"
	$(GO) -C examples/orders run ./cmd/demo -python $(VENV_PYTHON) -kitex $(ROOT)/bin/kitex-shop
	$(GO) -C examples/gateway run ./cmd/demo
	$(GO) -C examples/fleet run . -demo
	$(GO) -C examples/quotes run . -demo -python $(VENV_PYTHON)

# Does not depend on generate: the first step generates, and fails if a committed
# file was stale.
.PHONY: test
test: bin/fulmar bin/staticcheck bin/verify bin/kitex-peer bin/kitex-shop bin/apache-peer $(VENV)/ready registries ## Everything that must hold before a commit (about 12 minutes)
	bin/verify -root $(ROOT) -python $(VENV_PYTHON) test

# The tests that need them are skipped without, and fail in "make chaos".
.PHONY: registries
registries: ## etcd and ZooKeeper for the tests of contrib, from Debian's packages, into .cache
	@$(MAKE) --no-print-directory $(ETCD) $(ZOOKEEPER) $(NETTY) || echo "registries: some tests of contrib/etcd and contrib/zookeeper will be skipped" >&2

.PHONY: lint
lint: generate bin/staticcheck bin/verify ## gofmt, go mod tidy, go vet, staticcheck, rules about the tree
	bin/verify -root $(ROOT) lint
	$(GO) test -count=1 ./internal/archtest

.PHONY: generate
generate: bin/fulmar bin/fulmar-gen-mock bin/fulmar-gen-validate ## Run fulmar gen for all interface definitions of the tree
	@for module in $(GENERATED_MODULES); do \
		echo "generate $$module"; \
		PATH="$(ROOT)/bin:$$PATH" $(GO) -C $$module generate ./... || exit 1; \
	done

# Each has its go:generate lines; what they write is committed in the root
# module and ignored by git elsewhere.
GENERATED_MODULES = . $(patsubst %/,%,$(sort $(dir $(wildcard examples/*/go.mod test/*/go.mod bench/go.mod bench/*/go.mod))))

.PHONY: fuzz
fuzz: generate bin/verify ## Run fuzz targets for TIME each (30s) [TARGETS=regexp] [LEDGER=1]
	bin/verify -root $(ROOT) -fuzztime $(TIME) -fuzztargets "$(TARGETS)" $(if $(filter-out 0,$(LEDGER)),-ledger) fuzz

# Which scenarios run, as a regular expression that matches "S11 rolling-restart".
SCENARIOS ?=
# How long S19 takes; a minute without it.
SOAK ?=

.PHONY: chaos
chaos: generate bin/chaos bin/chaos-race registries ## Faults and overload on real sockets [SCENARIOS=regexp] [SOAK=10m] (docs/guide/chaos.md)
	bin/chaos -race $(ROOT)/bin/chaos-race -run "$(SCENARIOS)" $(if $(SOAK),-soak $(SOAK))
	$(if $(SCENARIOS),,FULMAR_REGISTRIES=required $(GO) -C contrib/etcd test -count=1 -v -run Outage .)
	$(if $(SCENARIOS),,FULMAR_REGISTRIES=required $(GO) -C contrib/zookeeper test -count=1 -v -run Outage .)

.PHONY: conformance
conformance: generate $(NGINX) $(SSLYZE) $(VENV)/ready ## Outside suites: h2spec, grpcurl, connectconformance, nginx, sslyze, the interoperability cases of gRPC, grpcio, streams of Kitex
	$(GO) -C test/conformance run . -nginx $(NGINX) -sslyze $(SSLYZE)
	$(GO) -C test/grpc test -count=1 -v ./interop
	FULMAR_PYTHON=$(VENV_PYTHON) $(GO) -C test/interop test -count=1 -v ./grpcio
	$(GO) -C test/kitex test -count=1 -v -run '^TestStream' ./proxied

# Flags for the benchmark, such as BENCHFLAGS="-cases mux-1k-c100 -rounds 9".
BENCHFLAGS ?=

.PHONY: bench
bench: generate bin/bench ## Comparisons with peers, SUITE=<name> [QUICK=1] (docs/guide/benchmarks.md)
	bin/bench run -root $(ROOT) -suite "$(SUITE)" $(if $(filter-out 0,$(QUICK)),-quick) $(BENCHFLAGS)

.PHONY: golden
golden: ## Rewrite the golden files; review the difference before you commit it
	$(GO) test ./internal/archtest -update

.PHONY: clean
clean: ## Remove everything that git ignores here: bin, .venv, .cache, generated code
	rm -rf bin .venv .cache examples/*/gen test/*/gen bench/gen bench/*/gen

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' Makefile

# ----------------------------------------------------------------- tools ---

# Always asked: the go command knows best whether anything changed.
.PHONY: bin/fulmar bin/fulmar-gen-mock bin/fulmar-gen-validate bin/verify bin/bench bin/chaos bin/chaos-race
bin/fulmar:
	@$(GO) -C cmd/fulmar build -o $(ROOT)/bin/fulmar .

bin/fulmar-gen-mock bin/fulmar-gen-validate: bin/%:
	@$(GO) -C contrib/plugins build -o $(ROOT)/bin/$* ./cmd/$*

bin/verify:
	@$(GO) -C tools build -o $(ROOT)/bin/verify ./verify

bin/bench:
	@$(GO) -C bench build -o $(ROOT)/bin/bench .

bin/chaos:
	@$(GO) -C test/chaos build -o $(ROOT)/bin/chaos .

# Its servers are those of S28.
bin/chaos-race:
	@CGO_ENABLED=1 $(GO) -C test/chaos build -race -o $(ROOT)/bin/chaos-race .

bin/staticcheck: tools/go.mod tools/go.sum
	$(GO) -C tools build -o $(ROOT)/bin/staticcheck honnef.co/go/tools/cmd/staticcheck

# The peers in Go, each from a module of its own and with code that its own tool
# generates. Built in time, because compiling Kitex takes a minute.
.PHONY: bin/kitex-peer bin/apache-peer
bin/kitex-peer bin/apache-peer: bin/%-peer:
	@$(GO) -C test/$* generate .
	$(GO) -C test/$* build -o $(ROOT)/$@ .

# The shop of examples/orders on Kitex, for make demo.
.PHONY: bin/kitex-shop
bin/kitex-shop:
	@$(GO) -C test/kitex generate ./shop
	$(GO) -C test/kitex build -o $(ROOT)/$@ ./shop

# The peers in Python. The stamp is newer than the requirements if everything
# in them is installed.
# The system's nginx, or that of Debian's package, which needs nobody's leave there.
$(ROOT)/.cache/nginx/usr/sbin/nginx:
	@mkdir -p $(ROOT)/.cache/nginx
	@cd $(ROOT)/.cache/nginx && apt-get download nginx && dpkg -x nginx_*.deb . || { echo "make conformance needs nginx on the PATH (Debian: apt-get update, apt-get install nginx)" >&2; exit 1; }

# Packages are looked up in lists of its own if the system has none yet, which needs
# nobody's leave either.
define unpack
	@mkdir -p $(1)
	@cd $(1) && { apt-get download $(2) 2>/dev/null || { mkdir -p apt/lists/partial apt/archives/partial && \
		set -- -o Dir::State::Lists=$(1)/apt/lists -o Dir::Cache=$(1)/apt && apt-get "$$@" update && apt-get "$$@" download $(2); }; } >/dev/null && \
		for package in *.deb; do dpkg -x "$$package" . || exit 1; done
	@test -e $@ && touch $@
endef

$(ROOT)/.cache/etcd/usr/bin/etcd:
	$(call unpack,$(ROOT)/.cache/etcd,etcd-server)

# With what it runs with: not all that the package depends on.
$(ROOT)/.cache/zookeeper/usr/share/java/zookeeper.jar:
	$(call unpack,$(ROOT)/.cache/zookeeper,libzookeeper-java libslf4j-java libdropwizard-metrics-java libsnappy-java)

# ZooKeeper encrypts with it.
$(ROOT)/.cache/netty/usr/share/java/netty-common.jar:
	$(call unpack,$(ROOT)/.cache/netty,libnetty-java)

$(SSLYZE): test/conformance/requirements.txt
	@$(PYTHON) -m venv $(ROOT)/.cache/sslyze || { echo "Python 3 needs its venv module (Debian: package python3-venv)" >&2; exit 1; }
	$(ROOT)/.cache/sslyze/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

$(VENV)/ready: test/interop/python/requirements.txt
	@$(PYTHON) -m venv $(VENV) || { echo "Python 3 needs its venv module (Debian: package python3-venv)" >&2; exit 1; }
	$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@
