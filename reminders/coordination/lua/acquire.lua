-- Takes a shard's lease and makes this server its home.
-- KEYS[1] string  lease:{s}
-- KEYS[2] hash    home:{s}
-- ARGV[1] string  token, drawn anew for each acquisition
-- ARGV[2] integer life of the lease in ms
-- Returns 1 held, 0 somebody else's.
-- A lease under another home binds nobody (whoever holds it is told MOVED), so it counts as free.
-- Repeating with the same token is safe: it only makes the home younger.
-- `since_us` is set anew, so that copies read under an earlier lease are STALE. `known_us` stays as long
-- as the server stays the home: what was claimed since then is on record here.

local holder = redis.call('GET', KEYS[1])
local since, known = home_since(KEYS[2])
if holder and holder ~= ARGV[1] and since then return 0 end
local now = now_us()
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
redis.call('HSET', KEYS[2], 'server', this_server(), 'since_us', whole(now),
  'known_us', whole(known or now))
return 1
