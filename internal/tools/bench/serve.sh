#!/bin/bash
# Requests per second and latency of `tessera serve`, and of onnxruntime-node behind node's http server, in alternating rounds by
# wrk on one thread, with the CPU time and the resident memory of each server. Linux only.
#
#   serve.sh TESSERA RUN [ONNX MODULES]      ROUNDS=5 SECONDS_EACH=4 CONNECTIONS=16 ENCODING=json|binary
#
# RUN is a run on images of 28x28, ONNX its encoder, MODULES a folder with node_modules/onnxruntime-node.
set -eu
here=$(dirname "$0")
"$1" serve "model=$2" --listen 127.0.0.1:8471 --reload -1s & ours=$!
peer=
if [ -n "${3:-}" ]; then
  NODE_PATH="$4/node_modules" PORT=8472 node "$here/node_server.cjs" "$3" 1 & peer=$!
fi
trap 'kill $ours $peer' EXIT
sleep 2
measure() { # NAME PID PORT
  echo "== $1, seconds of CPU and KiB resident before: $(ps -o cputimes=,rss= -p "$2")"
  wrk -t1 -c"${CONNECTIONS:-16}" -d"${SECONDS_EACH:-4}s" --latency -s "$here/serve.lua" "http://127.0.0.1:$3/v2/models/model/infer"
  echo "after: $(ps -o cputimes=,rss= -p "$2")"
}
for _ in $(seq "${ROUNDS:-5}"); do
  measure tessera $ours 8471
  [ -z "$peer" ] || measure onnxruntime-node $peer 8472
done
