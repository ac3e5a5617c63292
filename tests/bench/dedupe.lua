local ffi = require "ffi"
if not package.loaded.libcrypto_hmac then
	ffi.cdef [[
		const void *EVP_sha256(void);
		unsigned char *HMAC(const void *evp_md, const void *key, int key_len,
			const unsigned char *d, size_t n, unsigned char *md, unsigned int *md_len);
	]]
	package.loaded.libcrypto_hmac = ffi.load("libcrypto.so.3")
end
local crypto = package.loaded.libcrypto_hmac
local redis = require "nginx.redis"
local key = "@SECRET@"

ngx.req.read_body()
local body = ngx.req.get_body_data() or ""
local digest, size = ffi.new("unsigned char[32]"), ffi.new("unsigned int[1]")
crypto.HMAC(crypto.EVP_sha256(), key, #key, body, #body, digest, size)
local hex = {}
for i = 0, 31 do
	hex[i + 1] = string.format("%02x", digest[i])
end
if ngx.var.http_x_hub_signature_256 ~= "sha256=" .. table.concat(hex) then
	return ngx.exit(401)
end

local db = redis:new()
db:set_timeout(1000)
local ok = db:connect("@HOST@", @PORT@)
if not ok then
	return ngx.exit(503)
end
local first, err = db:set("naive:" .. ngx.var.http_x_github_delivery, "1", "NX", "EX", 604800)
if err then
	return ngx.exit(503)
end
db:set_keepalive(10000, 64)
if first == ngx.null then
	ngx.header["Webhook-Dedupe"] = "duplicate"
	ngx.header["Content-Length"] = 0
	return ngx.exit(200)
end
