#!/usr/bin/env bash
# Real RocketMQ servers for the specs of this folder.
#
#   spec/real/cluster.sh jars             fetches the jars (Maven), compiles the Java helpers
#   spec/real/cluster.sh run COMMAND...   does that too, boots a name server and a broker of each
#                                         version, runs the command, kills the servers when it ends
#
# The command sees:
#   RMQ_REAL_NAMESRV_54, RMQ_REAL_NAMESRV_49   host:port of the name server of 5.4.0 and of 4.9.2
#   RMQ_REAL_JAVA                              what runs a Java helper: sh -c "$RMQ_REAL_JAVA Drain ..."
#
# Every run has its own folder and its own ports, so several can go on at once. Servers are killed with
# SIGKILL: their stores are thrown away, and an orderly stop takes a broker up to twenty seconds.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
jars=$top/build/rocketmq
classes=$jars/helpers
versions="5.4.0 4.9.2"
boot_seconds=120

die() { printf 'cluster.sh: %s\n' "$*" >&2; exit 1; }

# -- jars and helpers ----------------------------------------------------------------

fetch_version() {
  local version=$1 target=$jars/$1
  local fingerprint
  fingerprint=$(cksum <"$here/java/pom.xml")
  [ "$(cat "$target/.complete" 2>/dev/null)" = "$fingerprint" ] && return 0
  printf 'fetching RocketMQ %s\n' "$version"
  rm -rf "$target"
  mkdir -p "$target"
  mvn -B -q -f "$here/java/pom.xml" -Drocketmq.version="$version" -DincludeScope=runtime \
    -DoutputDirectory="$target" dependency:copy-dependencies ||
    die "Maven could not fetch RocketMQ $version (see above). Is its repository reachable from here?"
  printf '%s\n' "$fingerprint" >"$target/.complete"
}

compile_helpers() {
  local fingerprint
  fingerprint=$(cat "$here"/java/* | cksum)
  [ "$(cat "$classes/.complete" 2>/dev/null)" = "$fingerprint" ] && return 0
  printf 'compiling the Java helpers\n'
  rm -rf "$classes"
  mkdir -p "$classes"
  javac -encoding UTF-8 -d "$classes" -cp "$jars/5.4.0/*" "$here"/java/*.java
  cp "$here/java/rmq.logback.xml" "$classes/"
  printf '%s\n' "$fingerprint" >"$classes/.complete"
}

prepare() {
  local version
  for version in $versions; do fetch_version "$version"; done
  compile_helpers
}

# -- servers -------------------------------------------------------------------------

port_is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Prints the first port of a free block of 40: per version a name server at +0 and a broker at +10,
# which also listens at +8 (a second port for clients) and +11 (replication); 4.9.2 stands 20 higher.
free_block() {
  local base=$((20000 + ($$ % 200) * 50)) tries=0 offset
  while [ $tries -lt 200 ]; do
    for offset in 0 8 10 11 20 28 30 31; do
      port_is_free $((base + offset)) || { offset=busy; break; }
    done
    [ "$offset" = busy ] || { printf '%s\n' "$base"; return 0; }
    base=$((20000 + (base - 20000 + 50) % 10000)) tries=$((tries + 1))
  done
  die "no free block of ports between 20000 and 30000"
}

# start_java VERSION FOLDER CLASS HEAP ARGUMENT... : a server in its own session, pid in FOLDER/pid.
start_java() {
  local version=$1 folder=$2 class=$3 heap=$4
  shift 4
  : >"$folder/out"
  # shellcheck disable=SC2086  # the heap is a list of options
  ROCKETMQ_HOME=$folder setsid java \
    --add-opens=java.base/java.nio=ALL-UNNAMED \
    --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
    --add-opens=java.base/jdk.internal.misc=ALL-UNNAMED \
    --add-opens=java.base/java.lang=ALL-UNNAMED \
    --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED \
    $heap -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Duser.home="$folder" -Drocketmq.home.dir="$folder" \
    -cp "$jars/$version/*" "$class" "$@" </dev/null >"$folder/out" 2>&1 &
  printf '%s\n' $! >"$folder/pid"
}

# await_boot FOLDER PORT: until the port accepts and the server says that it is up.
await_boot() {
  local folder=$1 port=$2 end=$((SECONDS + boot_seconds))
  until grep -q 'boot success' "$folder/out" && ! port_is_free "$port"; do
    if ! kill -0 "$(cat "$folder/pid")" 2>/dev/null || [ $SECONDS -ge $end ]; then
      tail -n 40 "$folder/out" >&2
      die "the server in $folder did not boot; its output stands above"
    fi
    sleep 0.1
  done
}

write_configuration() {
  local folder=$1 namesrv_port=$2 broker_port=$3
  mkdir -p "$folder/ns/conf" "$folder/broker/conf"
  # The 4.x servers want a logback file of each name; an empty configuration is enough.
  local name
  for name in namesrv broker; do
    printf '<configuration/>\n' >"$folder/ns/conf/logback_$name.xml"
    cp "$folder/ns/conf/logback_$name.xml" "$folder/broker/conf/"
  done
  cat >"$folder/ns/ns.conf" <<END
listenPort=$namesrv_port
kvConfigPath=$folder/ns/kv.json
configStorePath=$folder/ns/ns.properties
END
  # Fast failure would refuse sends that waited 200 ms in the broker, as they do on a busy machine.
  cat >"$folder/broker/broker.conf" <<END
brokerClusterName=C
brokerName=broker-a
brokerId=0
listenPort=$broker_port
haListenPort=$((broker_port + 1))
namesrvAddr=127.0.0.1:$namesrv_port
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
storePathRootDir=$folder/broker/store
storePathCommitLog=$folder/broker/store/commitlog
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=1200000
maxHashSlotNum=10000
maxIndexNum=40000
mappedFileSizeTimerLog=1048576
diskMaxUsedSpaceRatio=99
brokerFastFailureEnable=false
END
}

# boot VERSION FOLDER PORT: name server first, since a broker that misses it waits long to try again.
boot() {
  local version=$1 folder=$2 port=$3
  write_configuration "$folder" "$port" $((port + 10))
  start_java "$version" "$folder/ns" org.apache.rocketmq.namesrv.NamesrvStartup "-Xms64m -Xmx128m" \
    -c "$folder/ns/ns.conf"
  await_boot "$folder/ns" "$port"
  start_java "$version" "$folder/broker" org.apache.rocketmq.broker.BrokerStartup \
    "-Xms256m -Xmx384m -XX:MaxDirectMemorySize=128m" -c "$folder/broker/broker.conf"
  await_boot "$folder/broker" $((port + 10))
  timeout --foreground "$boot_seconds" bash -c "$RMQ_REAL_JAVA Admin 127.0.0.1:$port awaitBroker broker-a"
}

kill_servers() {
  local file
  for file in "$base"/*/*/pid; do
    [ -f "$file" ] && kill -KILL "$(cat "$file")" 2>/dev/null
  done
  rm -rf "$base"
}

run() {
  [ $# -ge 1 ] || die "run needs a command"
  prepare
  base=$(mktemp -d "${TMPDIR:-/tmp}/rmqlua-real.XXXXXX")
  local block command=0 first second status=0
  trap 'kill_servers || true' EXIT
  # A trap runs only between commands or in "wait", so what takes long is waited for.
  trap '[ "$command" = 0 ] || kill "$command" 2>/dev/null; exit 143' TERM
  trap '[ "$command" = 0 ] || kill "$command" 2>/dev/null; exit 130' INT
  block=$(free_block)
  mkdir -p "$base/home"
  printf -v RMQ_REAL_JAVA 'java %s -Duser.home=%q -cp %q' \
    "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1" "$base/home" "$classes:$jars/5.4.0/*"
  export RMQ_REAL_JAVA
  export RMQ_REAL_NAMESRV_54=127.0.0.1:$block RMQ_REAL_NAMESRV_49=127.0.0.1:$((block + 20))
  (trap - EXIT; boot 5.4.0 "$base/5.4.0" "$block") & first=$!
  (trap - EXIT; boot 4.9.2 "$base/4.9.2" $((block + 20))) & second=$!
  wait "$first" || die "RocketMQ 5.4.0 did not start"
  wait "$second" || die "RocketMQ 4.9.2 did not start"
  printf 'RocketMQ 5.4.0 at %s and 4.9.2 at %s are up after %s s\n' \
    "$RMQ_REAL_NAMESRV_54" "$RMQ_REAL_NAMESRV_49" "$SECONDS"
  "$@" & command=$!
  wait "$command" || status=$?
  exit "$status"
}

case "${1:-}" in
  jars) prepare ;;
  run) shift; run "$@" ;;
  *) sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
