-- Forgets consumers that hold nothing and have not been seen for long: dead processes.
-- One that lives is made again by its next message.
-- KEYS[1] stream  jobs:{s} or fires:{s}
-- ARGV[1] string  group
-- ARGV[2] integer idle time in ms
-- Returns how many were forgotten.

local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
if consumers.err then return 0 end  -- no stream or no group
local forgotten = 0
for _, consumer in ipairs(consumers) do
  local fields = {}
  for i = 1, #consumer, 2 do fields[consumer[i]] = consumer[i + 1] end
  if fields.pending == 0 and fields.idle > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], fields.name)
    forgotten = forgotten + 1
  end
end
return forgotten
