-- The request of serve.sh for wrk: the code of one image of 28x28, as JSON or, with ENCODING=binary, with binary data.
math.randomseed(1)
local pixels = {}
for i = 1, 784 do pixels[i] = math.random(0, 255) / 255 end
local function request(input, output)
  return '{"inputs":[{"name":"input","shape":[1,28,28],"datatype":"FP32",' .. input .. '}],"outputs":[{"name":"code"' .. output .. '}]}'
end
wrk.method, wrk.headers["Content-Type"] = "POST", "application/json"
if os.getenv("ENCODING") == "binary" then
  local ffi = require("ffi")
  local head = request('"parameters":{"binary_data_size":3136}', ',"parameters":{"binary_data":true}')
  wrk.headers["Inference-Header-Content-Length"] = #head
  wrk.body = head .. ffi.string(ffi.new("float[784]", pixels), 3136)
else
  wrk.body = request('"data":[' .. table.concat(pixels, ",") .. ']', '')
end
