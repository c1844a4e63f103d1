# What this project needs is checked, and installed where that is allowed, by scripts/need.sh; see
# `make help`.
SHELL := /bin/sh
CARGO ?= cargo
NPM ?= npm
PGDYNO := target/release/pgdyno
# Clippy's compiler makes code too, so the build that is linted is the one that is tested. Its
# arguments are as cargo-clippy gives them.
LINTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__

.DEFAULT_GOAL := help
.PHONY: help demo build dist test soak lint advisories docs types bench screenshots images fuzz clean need-build need-lint need-test need-soak need-docs need-bench need-dist

help: ## this list
	@echo "make demo         build, fetch a private PostgreSQL, run the demonstration, leave pgdyno-demo.html"
	@echo "make test         all tests, with everything they need"
	@echo "make soak         the long forms of the tests: a thousand kills, all profiles and versions, all guests, an hour of fuzzing"
	@echo "make lint         formats, lints, types: warnings are errors"
	@echo "make advisories   dependencies against the list of known faults, which is fetched"
	@echo "make docs         the book, into target/book, with what is made from the program"
	@echo "make types        what the page has of the code's tables and types, generated"
	@echo "make bench        what pgdyno costs, beside other tools, and its false alarms (an hour); SEARCH=1: searches and profiles too (two days)"
	@echo "make build        the program with its page: $(PGDYNO)"
	@echo "make dist         a static binary, packages of it (deb, rpm, apk) and an image, into target/dist"
	@echo "make screenshots  pictures of pgdyno-demo.html into target/screenshots, its head into docs/"
	@echo "make images       pictures of the page's views over sample data, into docs/images"
	@echo "make fuzz         a minute of fuzzing per parser of foreign bytes"
	@echo "make clean        remove what was built"

demo: build ## the whole loop, two to four minutes
	$(PGDYNO) demo

build: need-build ui/dist/app.js ## the program with its page
	$(CARGO) build --release --locked

dist: need-build need-dist ui/dist/app.js ## what is handed out, into target/dist
	CARGO="$(CARGO)" scripts/dist

test: need-test ui/dist/app.js ## everything
	$(LINTED) CARGO="$(CARGO)" NPM="$(NPM)" scripts/test

soak: need-test need-soak ui/dist/app.js ## what make test does in short, for hours
	$(LINTED) CARGO="$(CARGO)" scripts/soak

lint: need-build need-lint ui/dist/app.js ## warnings are errors
	$(CARGO) fmt --all --check
	$(LINTED) $(CARGO) build --workspace --all-targets --locked
	PATH="$$PWD/target/tools/deny/bin:$$PATH" $(CARGO) deny --locked --log-level error check bans licenses sources
	cd ui && $(NPM) run lint

advisories: need-lint ## dependencies against the list of known faults, which is fetched
	PATH="$$PWD/target/tools/deny/bin:$$PATH" $(CARGO) deny --locked check advisories

docs: build need-docs ## the book, into target/book
	scripts/book $(PGDYNO)

types: ## the page's table of metrics and its types, from the code's
	$(CARGO) run --quiet --locked -p pgdyno-record --example metrics_typescript > ui/src/generated/metrics.ts
	$(CARGO) run --quiet --locked -p pgdyno-serve --example model_typescript > ui/src/generated/model.ts

bench: need-bench build ## load engine, facts, sampler, store, page, and the reference against itself, about an hour
	benches/client-cpu.sh $(PGDYNO)
	benches/engines.sh $(PGDYNO)
	benches/open-loop.sh $(PGDYNO)
	benches/tpcc.sh $(PGDYNO)
	benches/stopped-server.sh $(PGDYNO)
	benches/data.sh $(PGDYNO)
	benches/facts.sh $(PGDYNO)
	$(CARGO) build --release --locked -p pgdyno-lab --example record
	benches/sampler.sh $(PGDYNO) target/release/examples/record
	$(CARGO) build --release --locked -p pgdyno-store --example fill
	benches/store.sh $(PGDYNO) target/release/examples/fill
	$(CARGO) build --release --locked -p pgdyno-report --example hundred
	benches/page.sh $(PGDYNO) target/release/examples/hundred
	benches/own.sh $(PGDYNO)
	benches/aa.sh $(PGDYNO)
ifdef SEARCH
	benches/surfaces.sh $(PGDYNO) target/surfaces
	$(CARGO) run --release --locked -p pgdyno-stats --example search_methods -- 100 30 target/surfaces/*.json
	benches/profiles.sh $(PGDYNO)
	benches/tune.sh $(PGDYNO)
endif

screenshots: images ## pictures of the report
	cd ui && $(NPM) run screenshot -- ../pgdyno-demo.html ../target/screenshots
	cp target/screenshots/report-head.png docs/

images: need-test ui/dist/app.js ## pictures of the views, for docs/how-to/serve.md
	cd ui && $(NPM) run views -- ../target/screenshots 1280 head
	mkdir -p docs/images && for view in index experiment waterfall charts timeline effects search efficiency settings trial heat-map compare ladder targets target live dark narrow; do cp target/screenshots/docs-$$view.png docs/images/$$view.png; done

fuzz: need-soak ## a minute for each target
	for target in $$(ls fuzz/targets | sed 's/\.rs$$//'); do \
	  RUSTC_BOOTSTRAP=1 $(CARGO) fuzz run --fuzz-dir fuzz $$target -- -max_total_time=60 -timeout=10 || exit 1; done

clean: ## remove what was built
	$(CARGO) clean
	rm -rf ui/dist ui/node_modules

need-build:
	@scripts/need.sh build
need-lint:
	@scripts/need.sh lint
need-test:
	@scripts/need.sh test
need-soak:
	@scripts/need.sh soak
need-docs:
	@scripts/need.sh docs
need-bench:
	@scripts/need.sh bench
need-dist:
	@scripts/need.sh dist

ui/node_modules/.package-lock.json: ui/package.json ui/package-lock.json
	@scripts/need.sh build
	cd ui && $(NPM) ci
	@touch $@

ui/dist/app.js: ui/node_modules/.package-lock.json $(shell find ui/src ui/scripts ui/*.config.ts ui/tsconfig.json -type f 2>/dev/null)
	cd ui && $(NPM) run build
	@touch $@
