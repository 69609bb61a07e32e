// The peer of encoding: an encoder in ONNX on onnxruntime-node.
//
//   node onnx_encode.cjs MODEL.onnx IMAGES.idx3-ubyte[.gz] THREADS RUNS
//
// It prints the median milliseconds in which 10,000 images become codes, in batches of 1,000, and the CPU time.
'use strict';
const fs = require('fs');
const zlib = require('zlib');
const ort = require('onnxruntime-node');

const [model, file, threads, runs] = process.argv.slice(2);
const images = 10000, batch = 1000;

function median(list) {
  return list.sort((a, b) => a - b)[Math.floor(list.length / 2)];
}

async function main() {
  let bytes = fs.readFileSync(file);
  if (file.endsWith('.gz')) bytes = zlib.gunzipSync(bytes);
  const [height, width] = [bytes.readUInt32BE(8), bytes.readUInt32BE(12)];
  const size = height * width;
  const values = Float32Array.from(bytes.subarray(16, 16 + images * size), (v) => v / 255);
  const session = await ort.InferenceSession.create(model, { intraOpNumThreads: Number(threads), interOpNumThreads: 1, graphOptimizationLevel: 'all' });
  const [input, output] = [session.inputNames[0], session.outputNames.includes('code') ? 'code' : session.outputNames[0]];
  const shape = session.inputMetadata?.[0]?.shape?.length === 4 ? [batch, height, width, 1] : [batch, height, width];
  const [clock, cpu] = [[], []];
  for (let run = 0; run < Number(runs); run++) {
    const [began, used] = [performance.now(), process.cpuUsage()];
    for (let i = 0; i < images; i += batch) {
      await session.run({ [input]: new ort.Tensor('float32', values.subarray(i * size, (i + batch) * size), shape) }, [output]);
    }
    clock.push(performance.now() - began);
    const spent = process.cpuUsage(used);
    cpu.push((spent.user + spent.system) / 1000);
  }
  console.log(median(clock), 'ms/step', median(cpu), 'cpu-ms/step');
}

main().catch((err) => { console.error(err); process.exit(1); });
