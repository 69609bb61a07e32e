// Runs ONNX models on the CPU. Reads jobs from standard input, one JSON object per line,
//   {"model": FILE, "inputs": [{"name": NAME, "dims": [2, 3], "values": BASE64}]}
// and answers each with a line: {"NAME": {"dims": [2, 4], "values": BASE64}, ...} or {"error": TEXT}. Values are float32.
const ort = require('onnxruntime-node');
const lines = require('readline').createInterface({input: process.stdin});

const floats = text => {
  const bytes = Buffer.from(text, 'base64');
  return new Float32Array(new Uint8Array(bytes).buffer);
};

let last = {};
async function run(job) {
  if (last.model !== job.model) {
    if (last.session) await last.session.release();
    last = {};
    last = {model: job.model, session: await ort.InferenceSession.create(job.model, {intraOpNumThreads: 1, logSeverityLevel: 3})};
  }
  const feeds = {};
  for (const x of job.inputs) feeds[x.name] = new ort.Tensor('float32', floats(x.values), x.dims);
  const answer = {};
  for (const [name, y] of Object.entries(await last.session.run(feeds))) {
    answer[name] = {dims: y.dims, values: Buffer.from(y.data.buffer, y.data.byteOffset, y.data.byteLength).toString('base64')};
  }
  return answer;
}

(async () => {
  for await (const line of lines) {
    let answer;
    try {
      answer = await run(JSON.parse(line));
    } catch (e) {
      answer = {error: String(e)};
    }
    process.stdout.write(JSON.stringify(answer) + '\n');
  }
})();
