-- Makes the caller the owner if the event is free for it.
-- KEYS[1] event; ARGV token, lease, ttl, takeover (0 or 1)
if not value then
  write('I', token, 1, '0')
elseif state == 'I' and owner == token then
  write('I', token, attempt, doubted)
elseif state == 'F' then
  write('I', token, attempt + 1, doubted)
elseif state and ARGV[4] == '1' and its_ttl - left >= tonumber(its_lease) then
  write('I', token, attempt + 1, '1')
end
return result()
