-- Makes a reminder's entries void up to a version, and tells which were claimed before.
-- (The `cancel` script of DESIGN; a reschedule runs it as well.)
-- KEYS[1] hash    home:{s}
-- KEYS[2] string  void:{s}:<reminder>
-- KEYS[3..] hash  fired:{s}:<minute>, one for each entry asked about
-- ARGV[1] integer version
-- ARGV[2] integer life of the void in ms
-- ARGV[3..] string dedupe ids of the entries, in the order of KEYS[3..]
-- Returns {1 if moved, else 0; TIME in us, as a string; 1 or 0 for each entry: claimed before}.
-- The void is set after a move, too: a scanner that acquires there will meet it.

local version = math.max(tonumber(redis.call('GET', KEYS[2]) or 0), tonumber(ARGV[1]))
redis.call('SET', KEYS[2], string.format('%.0f', version), 'PX', ARGV[2])
local answer = {home_since(KEYS[1]) and 0 or 1, string.format('%.0f', now_us())}
for i = 3, #KEYS do answer[i] = redis.call('HEXISTS', KEYS[i], ARGV[i]) end
return answer
