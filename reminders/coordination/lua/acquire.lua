-- Takes a shard's lease and makes this server its home.
-- KEYS[1] string  lease:{s}
-- KEYS[2] hash    home:{s}
-- ARGV[1] string  token, drawn anew for each acquisition
-- ARGV[2] integer life of the lease in ms
-- Returns 1 held, 0 somebody else's.
-- A lease under another home binds nobody (whoever holds it is told MOVED), so it counts as free.
-- Repeating with the same token is safe: it only makes the home younger.

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] and home_since(KEYS[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSET', KEYS[2], 'server', this_server(), 'since_us', string.format('%.0f', now_us()))
return 1
