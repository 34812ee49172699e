-- Put before every other script: which server this is, and whether it is a shard's home.
-- A promoted replica has another replication id, a restarted server another run id, and lost data
-- has no home at all.

local function this_server()
  local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
  local replication = string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
  return run .. '.' .. replication
end

-- In us since 1970: since when this server is the shard's home, and since when it has been so without
-- a break, so that no claim after that can be missing here. nil if it is not the home.
local function home_since(home_key)
  local home = redis.call('HMGET', home_key, 'server', 'since_us', 'known_us')
  if home[1] ~= this_server() then return nil end
  return tonumber(home[2]), tonumber(home[3])
end

-- Of an instant in us: a number as the server writes it would lose digits.
local function whole(number)
  return string.format('%.0f', number)
end

local function now_us()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
