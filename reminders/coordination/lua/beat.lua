-- A member says that it lives; those that did not for a while are forgotten.
-- KEYS[1] sorted set  members, scored by the server's TIME in ms
-- ARGV[1] string      member
-- ARGV[2] integer     life in ms
-- Returns the living members.

local now = math.floor(now_us() / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
return redis.call('ZRANGE', KEYS[1], 0, -1)
