# One image for everything of ours: brokers, adapters, subscribers and controllers differ by their command alone.
# A plain builder is enough.  Behind a repository of your own: PIP_INDEX_URL and TIDEMARK_MAVEN_MIRROR as build arguments.
FROM python:3.11.13-slim-bookworm

# Kafka 4 and Spark 4 run on Java 17.  The packages are those of the base image's Debian release.
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/tidemark
ENV PYTHONPATH=/opt/tidemark PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

# Slowest first: a change of the code alone fetches nothing again.
ARG PIP_INDEX_URL
COPY requirements.lock ./
RUN pip install --no-cache-dir --no-deps --require-hashes -r requirements.lock

# The broker's jars, each with its locked digest.
ARG TIDEMARK_MAVEN_MIRROR
COPY cli cli
COPY embedded embedded
COPY journal journal
RUN python -m cli setup --jars-only

COPY . .
# Whoever runs this may not write here, so nothing would be compiled later: each start, each health check would pay.
RUN python -m compileall -q . \
 && useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin tidemark \
 && install -d -o tidemark -g tidemark /data /store

USER tidemark
WORKDIR /data
ENTRYPOINT ["python", "-P", "-m"]
