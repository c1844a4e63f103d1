#!/usr/bin/env bash
# Hosts over ssh, all of them this host by an sshd of its own on 127.0.0.1: what reading fifty of
# them takes, what a second of a trial's series takes on the wire, how far apart the clients of ten
# hosts begin, and a load of two hosts beside the same load of one process. Needs root and
# openssh-server.
# Usage: benches/remote.sh [PGDYNO] [PAIRS]
pgdyno=${1:-target/release/pgdyno}
pairs=${2:-5}
. "$(dirname "$0")/common.sh"
keys=$PGDYNO_HOME/keys
mkdir -p "$keys" "$keys/user" /run/sshd
for key in host user_key; do ssh-keygen -q -t ed25519 -N "" -f "$keys/$key"; done
sshd_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat >"$keys/sshd_config" <<CONF
ListenAddress 127.0.0.1:$sshd_port
HostKey $keys/host
AuthorizedKeysFile $keys/user_key.pub
StrictModes no
UsePAM no
PidFile none
PermitRootLogin prohibit-password
MaxStartups 100
SetEnv HOME=$keys/user PGDYNO_HOME=$keys/user/home PGDYNO_REGISTRY=$keys/user/registry
CONF
echo "[127.0.0.1]:$sshd_port $(cat "$keys/host.pub")" >"$keys/known_hosts"
cat >"$keys/ssh_config" <<CONF
Host *
HostName 127.0.0.1
HostKeyAlias [127.0.0.1]:$sshd_port
Port $sshd_port
User root
IdentityFile $keys/user_key
IdentitiesOnly yes
UserKnownHostsFile $keys/known_hosts
CONF
/usr/sbin/sshd -D -f "$keys/sshd_config" -E "$keys/log" &
sshd=$!
trap 'kill $sshd; "$pgdyno" sandbox destroy "$name" >/dev/null 2>&1 || true; rm -rf "$PGDYNO_HOME"' EXIT
# Counts what comes from the host.
cat >"$keys/counted" <<SH2
#!/bin/sh
ssh -F $keys/ssh_config "\$@" | tee -p "$keys/bytes.\$\$"
SH2
chmod 755 "$keys/counted"
export PGDYNO_SSH="ssh -F $keys/ssh_config"
until $PGDYNO_SSH one true 2>/dev/null; do sleep 0.2; done
"$pgdyno" facts --host-only --host ssh:one >/dev/null

echo "facts of fifty hosts:"
{ echo "[fifty]"; seq -f "host%g" 50; } >"$keys/hosts.ini"
begun=$(date +%s.%N)
"$pgdyno" facts --host-only --inventory "$keys/hosts.ini" | tail -n 1
awk -v a="$begun" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f s\n", b - a }'

echo "series of a trial on the wire:"
cat >"$PGDYNO_HOME/wire.toml" <<TOML
name = "wire"
question = "How long is a second of series?"
design = "a-b"
blocks = 1
seed = 1
[target]
sandbox = "wire"
create = {}
[data]
scale = 1
[load]
workload = "tpcb"
clients = 2
rate = "200"
warmup_s = 1
measure_s = 60
[[step]]
name = "more"
settings.work_mem = "7MB"
TOML
for seconds in 20 80; do
  rm -f "$keys"/bytes.*
  PGDYNO_SSH=$keys/counted "$pgdyno" run "$PGDYNO_HOME/wire.toml" --set "load.measure_s=$seconds" --host ssh:one >/dev/null 2>&1
  cat "$keys"/bytes.* | wc -c
done | awk 'NR == 1 { a = $1 } END { printf "%.0f bytes a second, of two trials that are longer by 60 s\n", ($1 - a) / 120 }'
"$pgdyno" sandbox destroy wire --host ssh:one >/dev/null

set_up max_connections=50
way=(--load-connection "host=$socket")
echo "ten hosts with a client each that is mostly idle: how long after the common instant the last begins at most, by its clock as it is known"
hosts=()
for i in $(seq 10); do hosts+=(--load-host "ssh:host$i"); done
for _ in $(seq "$pairs"); do
  "$pgdyno" bench "sandbox:$name" -w simple -c 10 -j 1 -R 100 -d 2s "${hosts[@]}" "${way[@]}" --json |
    python3 -c 'import json, sys; print("%.1f ms" % max(host["began_late_ms"] for host in json.load(sys.stdin)["load_hosts"]))'
done

echo "two hosts beside one process, 8 clients of select: throughput, p99 in ms"
"$pgdyno" data create "sandbox:$name" --scale 2 >/dev/null
load=(-w select-only -c 8 -d 10s --warmup 2s --json)
line() { python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["tps"], r["response_ms"]["p99"], r["cross_check"]["agrees"])'; }
run_one() { "$pgdyno" bench "sandbox:$name" "${load[@]}" -j 2 | line; }
run_two() { "$pgdyno" bench "sandbox:$name" "${load[@]}" -j 1 --load-host ssh:a --load-host ssh:b "${way[@]}" | line; }
in_turn "$pairs" one two
cat "$PGDYNO_HOME/one.out" "$PGDYNO_HOME/two.out" | awk '{ n += $3 == "True" } END { print n " of " NR " agree with the server" }'
echo "two to one: throughput $(ratio two one 1), p99 $(ratio two one 2)"
