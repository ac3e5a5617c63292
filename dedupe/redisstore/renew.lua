-- Starts the owner's lease and time to live afresh; puts an absent event back.
-- KEYS[1] event; ARGV token, lease, ttl, attempt, doubted (0 or 1)
if not value then
  write('I', token, ARGV[4], ARGV[5])
elseif state == 'I' and owner == token then
  write('I', token, attempt, doubted)
end
return result()
