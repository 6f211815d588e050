#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes docs/schedules.md and its pictures again, from a build: scripts/schedules.sh [BUILD], build/release unless given.
set -eu
cd "$(dirname "$0")/.."
"${1:-build/release}/bin/stagecraft-cli" catalogue docs/schedules.md
