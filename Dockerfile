# One image for every role; ROLE in the environment tells them apart.
FROM node:24-slim
ENV NODE_ENV=production
WORKDIR /app

COPY package.json package-lock.json ./
COPY packages/durable-actors/package.json packages/durable-actors/
COPY packages/client/package.json packages/client/
COPY packages/cli/package.json packages/cli/
RUN npm ci --omit=dev && npm cache clean --force

COPY . .

# Only the embedded default writes files (OPERATING: give /data a volume if you use it).
RUN mkdir /data && chown node:node /data
ENV DATA_DIR=/data
USER node
EXPOSE 3000 3001
CMD ["node", "--max-semi-space-size=64", "--import=tsx", "src/main.ts"]
