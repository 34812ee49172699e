-- Put before every other script: which server this is, and whether it is a shard's home.
-- A promoted replica has another replication id, a restarted server another run id, and lost data
-- has no home at all.

local function this_server()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  return run .. '.' .. replication
end

-- The microseconds since 1970 since which this server is the shard's home; nil if it is not.
local function home_since(home_key)
  local home = redis.call('HMGET', home_key, 'server', 'since_us')
  if home[1] ~= this_server() then return nil end
  return tonumber(home[2])
end

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
