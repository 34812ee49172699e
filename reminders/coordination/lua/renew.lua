-- Prolongs a lease. PEXPIRE, not SET: it works on a server that is out of memory, too.
-- KEYS[1] string  lease:{s}
-- KEYS[2] hash    home:{s}
-- ARGV[1] string  token
-- ARGV[2] integer life in ms, from now
-- Returns 1 held, 0 lost, -1 moved.

if not home_since(KEYS[2]) then return -1 end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
