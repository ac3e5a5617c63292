-- Ends the owner's claim as in doubt, with a full lease; puts an absent event
-- back.
-- KEYS[1] event; ARGV token, lease, ttl, attempt
if not value then
  write('D', token, ARGV[4], '1')
elseif (state == 'I' or state == 'D') and owner == token then
  write('D', token, attempt, '1')
end
return result()
