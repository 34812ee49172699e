-- Takes over messages that a consumer got and left. XAUTOCLAIM does not tell how often a message was
-- delivered, nor, on 6.2, which ones are gone: so look first, then claim what was seen, in one step.
-- KEYS[1] stream  jobs:{s} or fires:{s}
-- ARGV[1] string  group
-- ARGV[2] string  consumer that takes over
-- ARGV[3] integer least idle time in ms
-- ARGV[4] integer at most so many
-- Returns {id, field, value, deliveries with this one} for each.

local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], 'IDLE', ARGV[3], '-', '+', ARGV[4])
local taken = {}
if pending.err then
  if string.find(pending.err, 'NOGROUP', 1, true) then return taken end  -- read makes the group
  return pending
end
for _, message in ipairs(pending) do
  local id = message[1]
  local claimed = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, id)
  if claimed[1] then
    taken[#taken + 1] = {id, claimed[1][2][1], claimed[1][2][2], message[4] + 1}
  else
    redis.call('XACK', KEYS[1], ARGV[1], id)  -- removed from the stream by hand
  end
end
return taken
