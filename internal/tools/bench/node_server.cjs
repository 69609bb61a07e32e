// The peer of serve.sh: a model in ONNX on onnxruntime-node behind node's http server, with the same protocol.
//
//   node node_server.cjs MODEL.onnx PROCESSES
//
// It checks less than a server should, and computes one request at a time per process: what node does best.
'use strict';
const cluster = require('cluster');
const http = require('http');
const ort = require('onnxruntime-node');

const [model, processes] = [process.argv[2], Number(process.argv[3])];
const pixels = 28 * 28;

async function serve(listening) {
  // one thread: for one image, more threads wait longer than they compute
  const session = await ort.InferenceSession.create(model, { intraOpNumThreads: 1, interOpNumThreads: 1, graphOptimizationLevel: 'all' });
  const [input, output] = [session.inputNames[0], session.outputNames.includes('code') ? 'code' : session.outputNames[0]];
  const answer = async (request, body) => {
    const header = request.headers['inference-header-content-length'];
    const asked = JSON.parse(header ? body.subarray(0, Number(header)) : body);
    const { shape, data } = asked.inputs[0];
    let image;
    if (header) {
      const at = body.subarray(Number(header));
      image = new Float32Array(at.buffer.slice(at.byteOffset, at.byteOffset + 4 * pixels));
    } else {
      image = Float32Array.from(data);
    }
    const result = (await session.run({ [input]: new ort.Tensor('float32', image, shape) }, [output]))[output];
    const values = result.data;
    const described = { name: 'code', datatype: 'FP32', shape: [1, values.length] };
    if (!header) {
      return [Buffer.from(JSON.stringify({ model_name: 'model', outputs: [{ ...described, data: Array.from(values) }] })), 0];
    }
    const head = Buffer.from(JSON.stringify({ model_name: 'model', outputs: [{ ...described, parameters: { binary_data_size: 4 * values.length } }] }));
    return [Buffer.concat([head, Buffer.from(values.buffer, values.byteOffset, 4 * values.length)]), head.length];
  };
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => answer(request, parts.length === 1 ? parts[0] : Buffer.concat(parts)).then(([body, header]) => {
      const headers = { 'Content-Type': 'application/json', 'Content-Length': body.length };
      if (header) headers['Inference-Header-Content-Length'] = header;
      response.writeHead(200, headers);
      response.end(body);
    }, (error) => {
      const body = JSON.stringify({ error: String(error) });
      response.writeHead(400, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
      response.end(body);
    }));
  });
  server.listen(Number(process.env.PORT || 0), '127.0.0.1', () => listening(server.address().port));
}

const announce = (port) => process.stderr.write(`http://127.0.0.1:${port}/v2/models/model\n`);
if (processes === 1) {
  serve(announce);
} else if (cluster.isPrimary) {
  let ready = 0;
  for (let i = 0; i < processes; i++) {
    cluster.fork({ PORT: 8471 }).on('message', (port) => {
      if (++ready === processes) announce(port);
    });
  }
  process.on('SIGTERM', () => process.exit(0));
} else {
  serve((port) => process.send(port));
}
