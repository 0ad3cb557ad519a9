#!/usr/bin/env bash
# Real RocketMQ servers for the specs of this folder.
#
#   spec/real/cluster.sh jars             fetches the jars (Maven), compiles the Java helpers
#   spec/real/cluster.sh run COMMAND...   does that too, boots a name server of each version with the
#                                         masters broker-a (4.9.2) or broker-a and broker-b (5.4.0),
#                                         runs the command, kills the servers when it ends
#   spec/real/cluster.sh kill SERVER      for that command: ends a server with SIGKILL
#   spec/real/cluster.sh start SERVER     starts it again on its folder and waits until it is up
#   spec/real/cluster.sh add SERVER...    boots up to two masters more, which go with "kill"
#   spec/real/cluster.sh freeze SERVER    stops it with SIGSTOP: it keeps its connections and is silent
#   spec/real/cluster.sh thaw SERVER      lets it go on
#
# A SERVER is a version and a name: 5.4.0/broker-b. The command sees:
#   RMQ_REAL_NAMESRV_54, RMQ_REAL_NAMESRV_49   host:port of the name server of 5.4.0 and of 4.9.2
#   RMQ_REAL_JAVA                              what runs a Java helper: sh -c "$RMQ_REAL_JAVA Drain ..."
#   RMQ_REAL_JAVA_49                           the same with the client of 4.9.2
#   RMQ_REAL_CLUSTER                           the folder of the servers, for "kill" and "start"
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

# Prints the first port of a free block of 40: per version a name server at +0 and brokers at +10 and
# +15; each also listens 2 below (a second port for clients) and 1 above (replication). 4.9.2 stands 20
# higher and has one broker. At +34 and +38 is room for two brokers that a command adds.
free_block() {
  local base=$((20000 + ($$ % 200) * 50)) tries=0 offset
  while [ $tries -lt 200 ]; do
    for offset in 0 8 10 11 13 15 16 20 28 30 31 32 34 35 36 38 39; do
      port_is_free $((base + offset)) || { offset=busy; break; }
    done
    [ "$offset" = busy ] || { printf '%s\n' "$base"; return 0; }
    base=$((20000 + (base - 20000 + 50) % 10000)) tries=$((tries + 1))
  done
  die "no free block of ports between 20000 and 30000"
}

# describe_server FOLDER VERSION CLASS HEAP ARGUMENT... : writes down how the server is started, and
# the logback files that 4.x servers want; empty ones are enough.
describe_server() {
  local folder=$1 name
  shift
  mkdir -p "$folder/conf"
  printf '%s\n' "$@" >"$folder/command"
  for name in namesrv broker; do printf '<configuration/>\n' >"$folder/conf/logback_$name.xml"; done
}

# start_server FOLDER : a server in its own session, pid in FOLDER/pid.
start_server() {
  local folder=$1 words
  mapfile -t words <"$folder/command"
  : >"$folder/out"
  # shellcheck disable=SC2086  # the heap is a list of options
  ROCKETMQ_HOME=$folder setsid java \
    --add-opens=java.base/java.nio=ALL-UNNAMED \
    --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
    --add-opens=java.base/jdk.internal.misc=ALL-UNNAMED \
    --add-opens=java.base/java.lang=ALL-UNNAMED \
    --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED \
    ${words[2]} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
    -Duser.home="$folder" -Drocketmq.home.dir="$folder" \
    -cp "$jars/${words[0]}/*" "${words[1]}" "${words[@]:3}" </dev/null >"$folder/out" 2>&1 &
  printf '%s\n' $! >"$folder/pid"
}

# is_gone PID : also true for a process that has ended and that its parent has not asked for yet.
is_gone() {
  local state
  state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null) || return 0
  case $state in '' | Z* | X*) return 0 ;; *) return 1 ;; esac
}

# await_boot FOLDER: until the port accepts and the server says that it is up.
await_boot() {
  local folder=$1 port end=$((SECONDS + boot_seconds))
  port=$(sed -n 's/^listenPort=//p' "$folder/server.conf")
  until grep -q 'boot success' "$folder/out" && ! port_is_free "$port"; do
    if is_gone "$(cat "$folder/pid")" || [ $SECONDS -ge $end ]; then
      tail -n 40 "$folder/out" >&2
      die "the server in $folder did not boot; its output stands above"
    fi
    sleep 0.1
  done
}

describe_namesrv() {
  local version=$1 folder=$2 port=$3
  describe_server "$folder" "$version" org.apache.rocketmq.namesrv.NamesrvStartup \
    "-Xms64m -Xmx128m" -c "$folder/server.conf"
  cat >"$folder/server.conf" <<END
listenPort=$port
kvConfigPath=$folder/kv.json
configStorePath=$folder/ns.properties
END
}

# describe_broker VERSION FOLDER NAMESRV_PORT PORT : the folder's name is the broker's.
describe_broker() {
  local version=$1 folder=$2 namesrv_port=$3 port=$4
  describe_server "$folder" "$version" org.apache.rocketmq.broker.BrokerStartup \
    "-Xms256m -Xmx384m -XX:MaxDirectMemorySize=256m" -c "$folder/server.conf"
  # Delays are short and exact, and transactions are asked about soon; what a broker does not know it does not read. Fast failure would refuse sends that waited 200 ms in the broker, as they do on a busy machine.
  cat >"$folder/server.conf" <<END
brokerClusterName=C
brokerName=${folder##*/}
brokerId=0
listenPort=$port
haListenPort=$((port + 1))
namesrvAddr=127.0.0.1:$namesrv_port
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
storePathRootDir=$folder/store
storePathCommitLog=$folder/store/commitlog
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=1200000
maxHashSlotNum=10000
maxIndexNum=40000
mappedFileSizeTimerLog=1048576
diskMaxUsedSpaceRatio=99
brokerFastFailureEnable=false
traceTopicEnable=true
messageDelayLevel=1s 2s 3s
timerPrecisionMs=100
recallMessageEnable=true
transactionTimeOut=2000
transactionCheckInterval=1500
transactionOpBatchInterval=200
enableLmq=true
enableMultiDispatch=true
END
}

# boot VERSION FOLDER PORT BROKER... : name server first, since a broker that misses it waits long to
# try again; the brokers side by side.
boot() {
  local version=$1 folder=$2 port=$3 broker broker_port
  shift 3
  describe_namesrv "$version" "$folder/ns" "$port"
  start_server "$folder/ns"
  await_boot "$folder/ns"
  broker_port=$((port + 10))
  for broker in "$@"; do
    describe_broker "$version" "$folder/$broker" "$port" "$broker_port"
    start_server "$folder/$broker"
    broker_port=$((broker_port + 5))
  done
  for broker in "$@"; do await_boot "$folder/$broker"; done
  timeout --foreground "$boot_seconds" bash -c "$RMQ_REAL_JAVA Admin 127.0.0.1:$port awaitBroker $*"
}

# folder_of SERVER : the folder of a server of the cluster that runs this script's caller.
folder_of() {
  local folder=${RMQ_REAL_CLUSTER:?is not set; this command is for what "run" runs}/${1:-}
  [ -f "$folder/command" ] || die "there is no server '${1:-}'; there is 5.4.0/broker-b"
  printf '%s\n' "$folder"
}

# A second server on the folder of one that has not quite ended would find it locked.
kill_server() {
  local folder pid
  folder=$(folder_of "$@")
  pid=$(cat "$folder/pid")
  is_gone "$pid" && die "$1 does not run"
  kill -KILL "$pid"
  until is_gone "$pid"; do sleep 0.02; done
}

start_again() {
  local folder
  folder=$(folder_of "$@")
  is_gone "$(cat "$folder/pid")" || die "$1 runs already"
  start_server "$folder"
  await_boot "$folder"
}

# add_brokers SERVER... : brokers that only some specs need, side by side. They are known to their name
# server when this returns.
add_brokers() {
  local server version folder namesrv_port port names=()
  for server in "$@"; do
    version=${server%%/*} folder=${RMQ_REAL_CLUSTER:?is not set; this command is for what \"run\" runs}/$server
    namesrv_port=$(sed -n 's/^listenPort=//p' "$RMQ_REAL_CLUSTER/$version/ns/server.conf")
    port=$((namesrv_port + 34))
    [ "$version" = 5.4.0 ] || die "there is room for more brokers of 5.4.0 only"
    port_is_free "$port" || port=$((port + 4))
    [ ${#names[@]} = 0 ] || port=$((namesrv_port + 38))
    [ ${#names[@]} -lt 2 ] || die "there is room for two"
    rm -rf "$folder"
    describe_broker "$version" "$folder" "$namesrv_port" "$port"
    start_server "$folder"
    names+=("${server#*/}")
  done
  for server in "$@"; do await_boot "$RMQ_REAL_CLUSTER/$server"; done
  timeout --foreground "$boot_seconds" bash -c \
    "$RMQ_REAL_JAVA Admin 127.0.0.1:$namesrv_port awaitBroker ${names[*]}"
}

# signal_server SIGNAL SERVER
signal_server() {
  local folder
  folder=$(folder_of "$2")
  kill "-$1" "$(cat "$folder/pid")"
}

kill_servers() {
  local file
  for file in "$base"/*/*/pid; do
    [ -f "$file" ] && kill -KILL "$(cat "$file")" 2>/dev/null
  done
  rm -rf "$base"
}

# helper_command VERSION : what runs a Java helper with the client of that version.
helper_command() {
  printf 'java %s -Duser.home=%q -cp %q' "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1" \
    "$base/home" "$classes:$jars/$1/*"
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
  RMQ_REAL_JAVA=$(helper_command 5.4.0)
  RMQ_REAL_JAVA_49=$(helper_command 4.9.2)
  export RMQ_REAL_JAVA RMQ_REAL_JAVA_49
  export RMQ_REAL_CLUSTER=$base
  export RMQ_REAL_NAMESRV_54=127.0.0.1:$block RMQ_REAL_NAMESRV_49=127.0.0.1:$((block + 20))
  (trap - EXIT; boot 5.4.0 "$base/5.4.0" "$block" broker-a broker-b) & first=$!
  (trap - EXIT; boot 4.9.2 "$base/4.9.2" $((block + 20)) broker-a) & second=$!
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
  kill) shift; kill_server "$@" ;;
  start) shift; start_again "$@" ;;
  add) shift; add_brokers "$@" ;;
  freeze) shift; signal_server STOP "$@" ;;
  thaw) shift; signal_server CONT "$@" ;;
  *) sed -n '2,21s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
