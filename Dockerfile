# The images of operator and recorder. hack/images builds both without a registry; where there is one:
#   docker build --target operator --tag kube-nvr-operator .
#   docker build --target recorder --tag kube-nvr-recorder .

# What the programs run on: any Debian or relative of it.
ARG BASE=docker.io/library/debian:bookworm-slim
# What they are built with: the same with node and npm, for the same architecture.
ARG BUILDER=docker.io/library/node:24.21.0-bookworm-slim

FROM ${BUILDER} AS build
WORKDIR /src
COPY package.json package-lock.json ./
# A registry that is not the public one is named by a secret `npmrc`, its certificate authority by a secret `ca`.
RUN --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=ca,target=/run/secrets/ca \
    if [ -s /run/secrets/ca ]; then export NODE_EXTRA_CA_CERTS=/run/secrets/ca; fi && \
    npm ci --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel=error
COPY base base
COPY crds crds
COPY operator operator
COPY recorder recorder
COPY hack/image hack/image
RUN node hack/image/bundle.ts /app

FROM ${BASE} AS operator
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /app/package.json /app/package.json
COPY --from=build /app/operator /app/operator
WORKDIR /app
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["node", "--enable-source-maps", "operator/main.js"]

FROM ${BASE} AS recorder
RUN apt-get update && \
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ffmpeg redis-server && \
    apt-get clean && \
    rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /app/package.json /app/package.json
COPY --from=build /app/page /app/page
COPY --from=build /app/recorder /app/recorder
WORKDIR /app
# Its user is who owns the archive on the node; the kubelet makes directories as root.
EXPOSE 9996 9997 9998
ENTRYPOINT ["node", "--enable-source-maps", "recorder/main.js"]
