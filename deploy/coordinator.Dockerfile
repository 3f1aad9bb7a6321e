# The coordinator as a container; the context is an unpacked bundle (docs/install.md):
#   docker build -f deploy/coordinator.Dockerfile -t muster/coordinator BUNDLE_DIRECTORY
# BASE may be any system with a Python that the bundle has wheels for; nothing else is fetched.
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
RUN mkdir -p /var/lib/muster/coordinator && chown 10001:10001 /var/lib/muster/coordinator \
 && chmod 0700 /var/lib/muster/coordinator
ENV PATH=/opt/muster/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LANG=C.UTF-8 \
    MUSTER_STATE=/var/lib/muster/coordinator \
    MUSTER_HOME=/var/lib/muster/coordinator/home \
    MUSTER_COORDINATOR=127.0.0.1:7460
USER 10001:10001
VOLUME /var/lib/muster/coordinator
EXPOSE 7460 7461 7462
# Asks for what every stranger may ask for, so that a coordinator that hangs is found out.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["python3", "-c", "import asyncio; \
from muster.rpc.pinning import pinned_authority; \
asyncio.run(pinned_authority('127.0.0.1:7460', lambda found: True))"]
ENTRYPOINT ["muster-coordinator"]
CMD ["--listen", "0.0.0.0:7460"]
