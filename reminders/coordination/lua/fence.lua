-- Makes the entries of a group void, as far as their records were created by then.
-- KEYS[1] string  voidgroup:{s}:<group>
-- ARGV[1] integer cancelled_at in us since 1970
-- ARGV[2] integer life in ms, that of a void
-- Returns nothing. It only grows: a late repeat of an older cancel takes nothing back. Set on any server,
-- home or not, as a void is.

local fence = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), tonumber(ARGV[1]))
redis.call('SET', KEYS[1], whole(fence), 'PX', ARGV[2])
