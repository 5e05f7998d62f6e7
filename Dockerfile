# The programs in an image of 100 MB:
#   docker build -t meridian .
#   docker run --rm -i -v "$PWD:/traces:ro" -w /traces meridian tp_shell query trace.pftrace "select count(*) from sched"
#   docker run --rm -p 127.0.0.1:9001:9001 -v "$PWD:/traces:ro" -w /traces meridian tp_shell server http --ip-address 0.0.0.0 trace.pftrace
#   docker run --rm --privileged --pid=host -u 0 -v /sys/kernel/tracing:/sys/kernel/tracing -v "$PWD:/out" meridian \
#     tracebox record -o /out/trace.pftrace -t 5s
FROM debian:12-slim AS build
COPY . /src
WORKDIR /src
RUN apt-get update && scripts/install-deps.sh && apt-get install -y --no-install-recommends dpkg-dev file && \
    make release && make deb && mkdir /debs && \
    mv build/release/meridian-tools_*.deb build/release/meridian-record_*.deb /debs/

FROM debian:12-slim
RUN --mount=from=build,source=/debs,target=/debs apt-get update && \
    apt-get install -y --no-install-recommends /debs/*.deb && rm -rf /var/lib/apt/lists/* && useradd --system meridian
USER meridian
CMD ["tp_shell", "--help"]
