-- For wrk: POSTs of BYTES bytes (an environment variable), 64 different prompts in turn, and the outcome as one line of JSON.
-- With ONCE set each is its connection's last.
local bytes = tonumber(os.getenv("BYTES"))
local model = os.getenv("MODEL") or "m"
local made, turn = {}, 0

function init()
  wrk.headers["content-type"] = "application/json"
  if os.getenv("ONCE") then wrk.headers["connection"] = "close" end
  for i = 1, 64 do
    local before = '{"model":"' .. model .. '","max_tokens":160,"messages":[{"role":"user","content":"' .. i .. ' '
    local after = '"}]}'
    local text = {}
    for j = 1, math.ceil(bytes / 8) do text[j] = string.format("%x ", (i * 7919 + j * 104729) % 0xfffffff) end
    local prompt = table.concat(text):sub(1, bytes - #before - #after)
    made[i] = wrk.format("POST", "/v1/chat/completions", nil, before .. prompt .. after)
  end
end

function request()
  turn = turn % 64 + 1
  return made[turn]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format('\n{"requests": %d, "seconds": %.6f, "p50_us": %d, "p99_us": %d, "failed": %d}\n', summary.requests,
    summary.duration / 1e6, latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
