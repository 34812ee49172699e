-- Gives up a lease. Giving up is right on any server, so nothing is refused after a move.
-- KEYS[1] string  lease:{s}
-- KEYS[2] hash    home:{s}
-- ARGV[1] string  token
-- Returns 1 released, 0 it was not ours, -1 moved (and released, if this server had kept it).

local ours = redis.call('GET', KEYS[1]) == ARGV[1]
if ours then redis.call('DEL', KEYS[1]) end
if not home_since(KEYS[2]) then return -1 end
return ours and 1 or 0
