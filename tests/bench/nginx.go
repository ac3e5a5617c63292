package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The naive form of what the gateway does, as it is often written: verify the
// signature, SET NX, and proxy if that was first.
//
//go:embed dedupe.lua
var naiveLua string

const (
	nginxModules  = "/usr/lib/nginx/modules/"
	nginxRedisLua = "/usr/share/lua/5.1/nginx/redis.lua"
)

// nginxPackages are Debian's.
var nginxPackages = []string{"nginx", "libnginx-mod-http-lua", "lua-nginx-redis"}

// installNginx installs what the rows of nginx need.
func installNginx(ctx context.Context) error {
	args := append([]string{"install", "-y", "--no-install-recommends"}, nginxPackages...)
	cmd := exec.CommandContext(ctx, "apt-get", args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// errNoNginx says that rows are left out.
var errNoNginx = errors.New("these packages are not installed (try -install): " + strings.Join(nginxPackages, " "))

// startNginx starts nginx with one worker, which proxies; with lua it removes
// duplicates before.
func (r *rig) startNginx(lua bool, dir string) (*server, error) {
	binary, err := exec.LookPath("nginx")
	if err != nil {
		if binary, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			return nil, errNoNginx
		}
	}
	for _, file := range []string{nginxModules + "ngx_http_lua_module.so", nginxRedisLua} {
		if _, err := os.Stat(file); lua && err != nil {
			return nil, errNoNginx
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	address := freeAddress()
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(r.nginxConfig(lua, address)), 0o600); err != nil {
		return nil, err
	}
	p, err := r.start(serverCore, address, binary, "-p", dir, "-c", config, "-e", filepath.Join(dir, "error.log"))
	if err != nil {
		return nil, err
	}
	return &server{proc: p, pid: p.cmd.Process.Pid, sites: map[string]string{"github": address}}, nil
}

// nginxConfig is a configuration whose only process is the worker.
func (r *rig) nginxConfig(lua bool, address string) string {
	modules, access := "", ""
	if lua {
		modules = "load_module " + nginxModules + "ndk_http_module.so;\nload_module " + nginxModules + "ngx_http_lua_module.so;\n"
		host, port, _ := strings.Cut(r.redis.address, ":")
		code := strings.NewReplacer("@HOST@", host, "@PORT@", port, "@SECRET@", secret).Replace(naiveLua)
		access = "access_by_lua_block {\n" + code + "}\n"
	}
	return fmt.Sprintf(`%sdaemon off;
master_process off;
worker_processes 1;
pid nginx.pid;
events { worker_connections 4096; }
http {
	access_log off;
	keepalive_requests 1000000000;
	client_max_body_size 25m;
	client_body_buffer_size 2m;
	client_body_temp_path body;
	proxy_temp_path proxy;
	fastcgi_temp_path fastcgi;
	uwsgi_temp_path uwsgi;
	scgi_temp_path scgi;
	upstream app {
		server %s;
		keepalive 64;
		keepalive_requests 1000000000;
	}
	server {
		listen %s;
		location / {
			%s
			proxy_pass http://app;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
		}
	}
}
`, modules, r.upstream, address, access)
}
