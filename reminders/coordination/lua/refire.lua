-- Hands entries to the expanders again.
-- KEYS[1] hash    home:{s}
-- KEYS[2] string  lease:{s}
-- KEYS[3] stream  fires:{s}
-- ARGV[1] string  token of the lease
-- ARGV[2..] blob  the encoded entries
-- Returns 1 done, 0 lost, -1 moved.

if not home_since(KEYS[1]) then return -1 end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
for i = 2, #ARGV do redis.call('XADD', KEYS[3], '*', 'e', ARGV[i]) end
return 1
