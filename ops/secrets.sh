#!/bin/sh
# Prints fresh secrets, those that .env does not have: sh ops/secrets.sh >>.env
# Keep a copy apart from every backup of MongoDB: without KEY_HASH_SECRET all API keys are lost, without SECRETS_KEY all
# webhook secrets.
set -eu
secret() { # name, words for openssl
  name=$1
  shift
  grep -q "^$name=." .env 2>/dev/null || echo "$name=$(openssl rand "$@")"
}
for each in OPERATOR_TOKEN KEY_HASH_SECRET MONGODB_PASSWORD MONGODB_ADMIN_PASSWORD REDIS_PASSWORD SENTINEL_PASSWORD; do
  secret "$each" -hex 24
done
secret SECRETS_KEY -base64 32
secret MONGODB_KEY -hex 256
