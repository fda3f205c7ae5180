# One image for every role; ROLE in the environment tells them apart. Node 24 reads TypeScript by itself, so nothing is
# built. Renovate renews the base and its digest (renovate.json).
FROM node:24.21.0-slim@sha256:d6aa754f16b3197301076f047b5def2f02ea1dbbc2ca920407d46d7ec7f87b20 AS base
WORKDIR /app

FROM base AS installed
COPY package.json package-lock.json ./
COPY packages/durable-actors/package.json packages/durable-actors/
COPY packages/client/package.json packages/client/
COPY packages/cli/package.json packages/cli/
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund
# What is in it, for scanners. By `--omit=dev` npm 11 leaves out much that is installed.
RUN npm pkg delete devDependencies && npm sbom --sbom-format=cyclonedx >sbom.cdx.json

FROM base
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Kusanya" \
      org.opencontainers.image.description="Open mobile-money collections for Tanzania, with a statechart behind every payment" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION"
# Nobody installs anything in a running container.
RUN rm -rf /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn-*
ENV NODE_ENV=production
COPY --from=installed /app/node_modules node_modules
COPY --from=installed /app/sbom.cdx.json ./
COPY package.json package-lock.json openapi.json ./
COPY machines machines
COPY packages packages
COPY src src
COPY docs docs
COPY examples examples

# Where the archive's volume goes (ARCHIVE_DIR); a new one takes its owner from here.
RUN install -d -o 1000 -g 1000 -m 700 /var/lib/kusanya
# A number, so that Kubernetes can see that it is not root. It writes no file but the archive's.
USER 1000:1000
EXPOSE 3000 3001
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s --start-interval=1s --retries=12 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.ADMIN_PORT || 3001}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=64", "src/main.ts"]
