#!/bin/sh
# Prints fresh secrets for .env: sh ops/secrets.sh >.env
# Keep a copy apart from every backup of MongoDB: without KEY_HASH_SECRET all API keys are lost, without SECRETS_KEY all
# webhook secrets.
set -eu
for name in OPERATOR_TOKEN KEY_HASH_SECRET MONGODB_PASSWORD MONGODB_ADMIN_PASSWORD REDIS_PASSWORD SENTINEL_PASSWORD; do
  echo "$name=$(openssl rand -hex 24)"
done
echo "SECRETS_KEY=$(openssl rand -base64 32)"
echo "MONGODB_KEY=$(openssl rand -hex 256)"
