-- Claims entries: at most one first claim for each dedupe id, atomically for each entry.
-- KEYS[1] hash    home:{s}
-- KEYS[2] string  lease:{s}
-- KEYS[3] stream  jobs:{s}
-- KEYS[4] stream  fires:{s}
-- (fired:{s}:<minute>, void:{s}:<reminder> and voidgroup:{s}:<group> follow from the arguments: the
-- same hash tag)
-- ARGV[1] string  token of the lease
-- ARGV[2] blob    MessagePack array, see below
-- ARGV[3..] blob  the encoded entries, n of them
-- Returns 0 lost, -1 moved, else a string of n letters: Claimed, Duplicate, Readded, Early, Void,
-- Stale.
--
-- The array, columns of n values, entry i at place i; instants in us since 1970:
--  1 string     prefix of the dedupe hashes        2 string  prefix of the void keys
--  3 integer    life of a dedupe hash in ms        4 integer oldest age of a copy in us
--  5 integers   runs: minute, how many entries promised in it follow, minute, how many, ...
--  6 strings    dedupe ids                         7 integers ring_at
--  8 integers   read_at, or -1 where voids do not apply (anything but an occurrence, and what was
--               marked as claimed: somebody was told that it rings)
--  9 strings    reminder ids                      10 integers versions
-- 11 integers   places of entries to be rechecked 12 integers places of entries that recur
-- 13 array      place, group, the record's creation; place, group, ... of entries with a group
-- 14 string     prefix of the group void keys
-- 15 integer    how long before its time an entry may be claimed, in us
--
-- Order for an entry: never earlier than that, whatever else; then claimed before (void or not: it
-- rings); then stale and void, which stop a first claim only. XADD comes before the dedupe write: an
-- error does not roll back, and two jobs are better than none.

local since = home_since(KEYS[1])
if not since then return -1 end
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end

local now = now_us()
local batch = cmsgpack.unpack(ARGV[2])
local fired_prefix, void_prefix, fired_life, oldest_age = batch[1], batch[2], batch[3], batch[4]
local runs, dedupe, ring_at, read_at = batch[5], batch[6], batch[7], batch[8]
local reminders, versions = batch[9], batch[10]
local oldest = math.max(since, now - oldest_age)
local latest_ring = now + batch[15]

local recheck, recurs, cancelled = {}, {}, {}
for _, place in ipairs(batch[11]) do recheck[place] = true end
for _, place in ipairs(batch[12]) do recurs[place] = true end
local grouped, group_prefix, fences = batch[13], batch[14], {}
for at = 1, #grouped, 3 do
  local group = grouped[at + 1]
  if fences[group] == nil then fences[group] = redis.call('GET', group_prefix .. group) end
  local fence = fences[group]
  if fence and grouped[at + 2] <= tonumber(fence) then cancelled[grouped[at]] = true end
end

local void_keys = {}
for i, reminder in ipairs(reminders) do void_keys[i] = void_prefix .. reminder end
local voids = redis.call('MGET', unpack(void_keys))

local answers = {}

-- Hands entry i on; answers the job's id, or nil and the error.
local function hand_on(i)
  local id = redis.pcall('XADD', KEYS[3], '*', recheck[i] and 'r' or 'e', ARGV[i + 2])
  if type(id) == 'table' then return nil, id end
  return id
end

local function claim_run(minute, first, last)
  local key = fired_prefix .. minute
  local known = redis.call('HMGET', key, unpack(dedupe, first, last))
  local jobs, writes, problem = {}, {}, nil
  for i = first, last do
    local name = dedupe[i]
    local job = jobs[name] or known[i - first + 1]
    local answer
    if ring_at[i] > latest_ring then
      answer = 'E'
    elseif job then
      answer = 'D'
      if recheck[i] and #redis.call('XRANGE', KEYS[3], job, job) == 0 then answer = 'R' end
    elseif read_at[i] >= 0 and read_at[i] < oldest then
      answer = 'S'
    elseif read_at[i] >= 0
      and (cancelled[i] or (voids[i] and versions[i] <= tonumber(voids[i]))) then
      answer = 'V'
    else
      answer = 'C'
    end
    if answer == 'C' or answer == 'R' then
      job, problem = hand_on(i)
      if problem then break end
      jobs[name] = job
      writes[#writes + 1] = name
      writes[#writes + 1] = job
      if answer == 'C' and recurs[i] then
        local fire = redis.pcall('XADD', KEYS[4], '*', 'e', ARGV[i + 2])
        if type(fire) == 'table' then problem = fire break end
      end
    end
    answers[i] = answer
  end
  if #writes > 0 then
    redis.call('HSET', key, unpack(writes))
    redis.call('PEXPIRE', key, fired_life)
  end
  return problem
end

local first = 1
for at = 1, #runs, 2 do
  local problem = claim_run(whole(runs[at]), first, first + runs[at + 1] - 1)
  if problem then return problem end
  first = first + runs[at + 1]
end
return table.concat(answers)
