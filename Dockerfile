# The images of operator and recorder. build/images builds both without a registry; where there is one:
#   docker build --target operator --tag kube-nvr-operator --build-arg BASE=… --build-arg BUILDER=… .
#   docker build --target recorder --tag kube-nvr-recorder --build-arg BASE=… --build-arg BUILDER=… .
# with both by digest, because a tag names another image tomorrow:
#   BASE=docker.io/library/debian@sha256:… BUILDER=docker.io/library/node@sha256:… (of node:24.21.0-bookworm-slim)
# Neither has a shell or a package manager: they hold a program, its libraries and nothing else.

ARG NODE_VERSION=24.21.0
# Where libraries, ffmpeg and redis-server come from: any Debian or relative of it.
ARG BASE
# What bundles the programs, with node, its licence and npm in /usr/local; its node is that of the images.
ARG BUILDER

FROM ${BUILDER} AS builder

FROM ${BASE} AS system
RUN apt-get -q update && \
    DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends redis-server \
    dpkg-dev gcc libc6-dev libx264-dev make nasm pkg-config xz-utils
COPY build/image/ffmpeg.sh /build/ffmpeg.sh
RUN /build/ffmpeg.sh /build/ffmpeg
COPY --from=builder /usr/local/bin/node /build/node
COPY build/image/collect.sh build/image/pause.c /build/
# Without the names that only a debugger of Node itself reads: 18 MB.
RUN strip -o /usr/local/bin/node /build/node && \
    cp /build/ffmpeg/ffmpeg /usr/local/bin/ffmpeg && \
    /build/collect.sh /operator /usr/local/bin/node && \
    gcc -static -Os -s -o /usr/local/bin/pause /build/pause.c && \
    /build/collect.sh /recorder /usr/local/bin/node /usr/local/bin/ffmpeg /usr/bin/redis-server /usr/bin/prlimit /usr/local/bin/pause && \
    ln -s redis-server /recorder/usr/bin/redis-check-aof && \
    mkdir -p /recorder/usr/share/doc/ffmpeg && \
    cp /build/ffmpeg/copyright /build/ffmpeg/version /recorder/usr/share/doc/ffmpeg/

# The sources of the parts under GPL and LGPL, and the scripts that build them here: a person who passes the images on needs both
# (build/images --sources).
FROM system AS collected
COPY build/image/licences.ts build/image/sources.ts /build/
RUN node /build/sources.ts /recorder /sources && cp /build/ffmpeg.sh /build/pause.c /sources/

FROM scratch AS sources
COPY --from=collected /sources /

FROM builder AS build
WORKDIR /src
COPY package.json package-lock.json ./
# A registry that is not the public one is named by a secret `npmrc`, its certificate authority by a secret `ca`.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=ca,target=/run/secrets/ca \
    if [ -s /run/secrets/ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca; fi && \
    npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
COPY base base
COPY console console
COPY crds crds
COPY operator operator
COPY recorder recorder
COPY store store
COPY build/image build/image
COPY LICENSE NOTICE ./
COPY --from=system /operator /system/operator
COPY --from=system /recorder /system/recorder
RUN node build/image/bundle.ts operator /out/operator /system/operator && \
    node build/image/bundle.ts recorder /out/recorder /system/recorder

# Labels of licences are what the lists of parts conclude (build/image/sbom.ts); test/image compares them.
FROM scratch AS operator
COPY --from=system /operator /
COPY --from=build /out/operator /
ENV PATH=/usr/local/bin:/usr/bin
WORKDIR /app
USER 65532:65532
EXPOSE 8080
LABEL org.opencontainers.image.title="kube-nvr-operator" \
      org.opencontainers.image.description="Operator of kube-nvr: gives cameras to recorders" \
      org.opencontainers.image.licenses="0BSD AND Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND GPL-3.0-or-later WITH GCC-exception-3.1 AND ISC AND LGPL-2.1-or-later AND MIT AND Unicode-3.0 AND Unlicense AND Zlib"
ENTRYPOINT ["operator"]

FROM scratch AS recorder
COPY --from=system /recorder /
COPY --from=build /out/recorder /
ENV PATH=/usr/local/bin:/usr/bin
WORKDIR /app
# On Kubernetes its directories are given to this user before it starts (recorder prepare-node).
USER 65532:65532
EXPOSE 9996 9997 9998
LABEL org.opencontainers.image.title="kube-nvr-recorder" \
      org.opencontainers.image.description="Recorder of kube-nvr: records cameras on one node" \
      org.opencontainers.image.licenses="0BSD AND Apache-2.0 AND BSD-2-Clause AND BSD-3-Clause AND (BSD-3-Clause OR GPL-2.0-only) AND BlueOak-1.0.0 AND CC0-1.0 AND GPL-2.0-or-later AND GPL-3.0-or-later WITH GCC-exception-3.1 AND ISC AND LGPL-2.1-or-later AND LicenseRef-public-domain AND MIT AND MIT-0 AND Unicode-3.0 AND Zlib"
ENTRYPOINT ["recorder"]
