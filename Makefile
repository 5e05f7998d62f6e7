# The few commands a newcomer needs; CMake does the work.
CMAKE ?= cmake
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CACHE := $(if $(shell command -v ccache 2>/dev/null),-DCMAKE_C_COMPILER_LAUNCHER=ccache)

.PHONY: all release debug asan tsan fuzz fuzz-all coverage deps deps-tests demo check tested-release check-threads bench bench-fleet bench-json bench-recordings bench-operators bench-perf bench-symbols bench-probes bench-relay bench-server bench-service bench-snapshot deb tarball docs site install format tidy clean
all: release

# What the build needs, installed when it is missing.
deps:
	@scripts/install-deps.sh

# … and what the end-to-end tests need on top.
deps-tests:
	@scripts/install-deps.sh --tests

# Each fuzz target (or TARGETS, by name) for MINUTES: docs/security.md has the table of what came of it.
MINUTES ?= 10
fuzz-all: fuzz
	@scripts/fuzz_all.py build/fuzz --minutes $(MINUTES) --jobs $(JOBS) $(TARGETS)

release debug asan tsan coverage: deps
	@[ -f build/$@/build.ninja ] || $(CMAKE) --preset $@ $(CACHE)
	@$(CMAKE) --build build/$@ -j $(JOBS)

fuzz: deps
	@[ -f build/$@/build.ninja ] || $(CMAKE) --preset $@ $(CACHE)
	@$(CMAKE) --build build/$@ -j $(JOBS) --target fuzzers

# Builds the release and answers a few questions about a bundled recording of two machines.
demo: release
	@scripts/demo.sh build/release/tp_shell test/data/mm-calls.pftrace.gz

# Runs every test twice: with address and undefined-behaviour sanitizers, and on the release that users get.
check: deps-tests asan tested-release
	@scripts/run-tests.sh asan release -- $(CTEST_ARGS)

# The release with its tests beside it.
tested-release: deps
	@$(CMAKE) --preset release $(CACHE) -DBUILD_TESTING=ON >/dev/null
	@$(CMAKE) --build build/release -j $(JOBS)

# Builds with the thread sanitizer and runs the tests that use threads: decompression, the server.
check-threads: tsan
	@TSAN_OPTIONS=halt_on_error=1 ctest --test-dir build/tsan --output-on-failure -j $(JOBS) --timeout 600 \
		-R '^(unit\.hostile_trace|unit\.sample_writer|unit\.sorter|unit\.tp|golden\.compressed|server)' $(CTEST_ARGS)

# Imports amplified recordings and runs the benchmark queries: test/bench/README.md.
bench: release
	@$(CMAKE) --build build/release -j $(JOBS) --target amplify sdk_trace bench_sorter
	@python3 test/bench/bench.py --build build/release $(BENCH_ARGS)

# Rows per second of span joins (1 M by 1 M), intersections, materialising 10 M rows, function calls.
bench-operators: release
	@$(CMAKE) --build build/release -j $(JOBS) --target bench_operators
	@build/release/bench_operators

# What sampling costs on this machine, beside perf record; needs root.
bench-perf: release
	@$(CMAKE) --build build/release -j $(JOBS) --target busy bench_unwind
	@build/release/bench_unwind
	@python3 test/bench/bench_perf.py build/release

# How fast 100,000 addresses of a program of 100 MB become names.
bench-symbols: release
	@python3 test/bench/bench_symbols.py build/release

# What recording costs on this machine; needs root and tracefs.
bench-probes: release
	@python3 test/bench/bench_probes.py build/release

# What the tracing service costs: bytes a CPU second through its buffer, commits of up to 500 producers, idling.
bench-service: release
	@$(CMAKE) --build build/release -j $(JOBS) --target bench_buffer service_load
	@python3 test/bench/bench_service.py build/release

# What the relay costs beside socat: MB a CPU second, latency, 100 producers on 20 machines.
bench-relay: release
	@$(CMAKE) --build build/release -j $(JOBS) --target tracebox bench_producer
	@python3 test/bench/bench_relay.py --build build/release $(BENCH_ARGS)

# Adding to a fleet beside importing alone, bytes a row, queries over 1,000 recordings; needs clickhouse-server.
bench-fleet: release
	@python3 test/bench/bench_fleet.py build/release $(BENCH_ARGS)

# Opening snapshots: time, private memory, size, beside importing.
bench-snapshot: release
	@$(CMAKE) --build build/release -j $(JOBS) --target amplify
	@python3 test/bench/bench_snapshot.py build/release $(BENCH_ARGS)

# Reading 1 GB of JSON as Chrome and as PyTorch write it: MB a second of CPU, peak memory.
bench-json: release
	@$(CMAKE) --build build/release -j $(JOBS) --target json_trace
	@python3 test/bench/bench_json.py build/release $(BENCH_ARGS)

# Importing what trace-cmd, perf and LTTng record beside the programs that print it, and beside a recording of our own.
bench-recordings: release
	@python3 test/bench/bench_recordings.py build/release $(BENCH_ARGS)

# A long answer over WebSocket, and the Perfetto UI's load.
bench-server: release
	@python3 test/bench/bench_server.py --build build/release $(BENCH_ARGS)

# Programs, header, library and pkg-config file below PREFIX (and DESTDIR).
PREFIX ?= /usr/local
install: release
	@$(CMAKE) --install build/release --prefix $(PREFIX)

# Packages for Debian and Ubuntu, in build/release (needs dpkg-dev and file).
deb: release
	@cd build/release && cpack -G DEB

# The recorder alone, static, for machines without packages of ours.
tarball: release
	@scripts/make-tarball.sh build/release

# Pages made from the sources.
docs: release
	@$(CMAKE) --build build/release --target docs

# The pages as static files, in build/site. Needs python3-markdown.
site:
	@scripts/make-site.py

format:
	@git ls-files 'src/*.[ch]' 'test/*.[ch]' 'include/*.h' | xargs clang-format -i

tidy: debug
	@git ls-files 'src/*.c' | xargs clang-tidy -p build/debug --quiet

clean:
	rm -rf build
