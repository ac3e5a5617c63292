-- Ends the owner's claim as failed; puts an absent event back only if doubted.
-- KEYS[1] event; ARGV token, lease, ttl, attempt, doubted (0 or 1)
if not value then
  if ARGV[5] == '1' then write('F', '', ARGV[4], '1') end
elseif (state == 'I' or state == 'D') and owner == token then
  write('F', '', attempt, doubted)
end
return result()
