-- Common to all scripts, which are put behind it. KEYS[1] is the event, and
-- ARGV[1..3] are token, lease and ttl of the caller, in milliseconds.
local token, lease, ttl = ARGV[1], ARGV[2], ARGV[3]
local value = redis.call('GET', KEYS[1])
local left = redis.call('PTTL', KEYS[1])
local state, owner, attempt, doubted, its_lease, its_ttl
if value then
  state, owner, attempt, doubted, its_lease, its_ttl =
    string.match(value, '^([IDF]):([%w_-]*):(%d+):([01]):(%d+):(%d+)$')
  if left < 0 then state = nil end
end

local function write(letter, name, n, doubt)
  value = table.concat({letter, name, n, doubt, lease, ttl}, ':')
  redis.call('SET', KEYS[1], value, 'PX', ttl)
  left = tonumber(ttl)
end

-- Every script returns the event as it is after it.
local function result() return {value, left} end
