# The few commands a newcomer needs; CMake does the work.
CMAKE ?= cmake

.PHONY: all release debug asan deps clean
all: release

release debug asan tsan fuzz coverage:
	@[ -f build/$@/build.ninja ] || $(CMAKE) --preset $@
	@$(CMAKE) --build build/$@

clean:
	rm -rf build
