-- Makes a reminder's entries void up to a version, and tells which were claimed before.
-- (The `cancel` script of DESIGN; a reschedule runs it as well.)
-- KEYS[1] hash    home:{s}
-- KEYS[2] string  void:{s}:<reminder>
-- KEYS[3..] hash  fired:{s}:<minute>, one for each entry asked about
-- ARGV[1] integer version; -1 only asks
-- ARGV[2] integer life of the void in ms
-- ARGV[3..] string dedupe ids of the entries, in the order of KEYS[3..]
-- Returns {known_us of the home, nil if moved; TIME in us; 1 or 0 for each entry: claimed before}; both
-- times as strings.
-- The void is set after a move, too: a scanner that acquires there will meet it.

local asked = tonumber(ARGV[1])
if asked >= 0 then
  local version = math.max(tonumber(redis.call('GET', KEYS[2]) or 0), asked)
  redis.call('SET', KEYS[2], whole(version), 'PX', ARGV[2])
end
local since, known = home_since(KEYS[1])
local answer = {since and whole(known or since) or false, whole(now_us())}
for i = 3, #KEYS do answer[i] = redis.call('HEXISTS', KEYS[i], ARGV[i]) end
return answer
