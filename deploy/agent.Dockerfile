# The agent as a container, for nodes that have Docker and no fitting Python; the context is an unpacked bundle:
#   docker build -f deploy/agent.Dockerfile -t muster/agent BUNDLE_DIRECTORY
# It needs the engine's socket, the node's network and processes, and its directories at the same paths inside and
# outside, since the engine mounts them by their paths outside: see compose.yaml and docs/install.md.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
COPY wheels /wheels
COPY requirements /requirements
RUN python3 -m venv --without-pip /opt/muster \
 && python=$(python3 -c 'import sys; print("cp%d%d" % sys.version_info[:2])') \
 && /opt/muster/bin/python "$(echo /wheels/pip-*.whl)/pip" install --quiet --no-index --no-cache-dir \
    --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
    --find-links /wheels --requirement "/requirements/$python-$(uname -m).txt"

FROM ${BASE}
COPY --from=build /opt/muster /opt/muster
ENV PATH=/opt/muster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    MUSTER_STATE=/var/lib/muster/agent \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=utility
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["test", "-e", "/tmp/ready"]
ENTRYPOINT ["muster-agent", "--ready-file", "/tmp/ready"]
