#!/usr/bin/env bash
# One broker of Apache Kafka on loopback, for tests: a KRaft node in a directory of its own.
#
#   broker.sh start DIR PORT     fetches Kafka by Maven (once a cache), formats DIR if it is empty, starts, waits
#   broker.sh stop DIR           stops it and waits; what it holds stays for the next start
#   broker.sh kill DIR           kill -9
#   broker.sh java DIR CLASS ... runs a tool of Kafka
#
# KAFKA_LIBS: where its jars are kept (default: DIR/libs).
set -euo pipefail

version=3.9.1
what=${1:?start, stop, kill or java}
dir=${2:?a directory}
libs=${KAFKA_LIBS:-$dir/libs}

fetch() {
    [ -f "$libs/.complete-$version" ] && return
    command -v mvn >/dev/null && command -v java >/dev/null || { echo "no java or mvn" >&2; exit 69; }
    mkdir -p "$libs"
    cat >"$libs/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>asofdb</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-tools</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
    (cd "$libs" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$PWD" >mvn.log 2>&1) || {
        tail -5 "$libs/mvn.log" >&2
        echo "Kafka cannot be fetched" >&2
        exit 69
    }
    touch "$libs/.complete-$version"
}

run() { java -Xmx"${KAFKA_HEAP:-512m}" -Dlog4j.configuration="file:$dir/log4j.properties" -cp "$libs/*" "$@"; }

configure() {
    local port=$1
    mkdir -p "$dir"
    cat >"$dir/server.properties" <<CONF
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$dir/data
num.partitions=4
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
log.cleaner.backoff.ms=500
log.retention.check.interval.ms=1000
group.initial.rebalance.delay.ms=0
CONF
    cat >"$dir/log4j.properties" <<CONF
log4j.rootLogger=WARN, stderr
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d %p %m (%c)%n
CONF
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

case $what in
start)
    port=${3:?a port}
    fetch
    configure "$port"
    if [ ! -d "$dir/data" ]; then
        run kafka.tools.StorageTool format -t MkU3OEVBNTcwNTJENDM2Qg -c "$dir/server.properties" >"$dir/format.log" 2>&1
    fi
    run kafka.Kafka "$dir/server.properties" >"$dir/broker.log" 2>&1 &
    echo $! >"$dir/pid"
    for _ in $(seq 300); do
        if answers "$port"; then
            echo "broker on 127.0.0.1:$port"
            exit 0
        fi
        kill -0 "$(cat "$dir/pid")" 2>/dev/null || break
        sleep 0.2
    done
    tail -20 "$dir/broker.log" >&2
    echo "the broker did not start" >&2
    exit 1
    ;;
stop | kill)
    [ -f "$dir/pid" ] || exit 0
    pid=$(cat "$dir/pid")
    if [ "$what" = kill ]; then kill -9 "$pid" 2>/dev/null || true; else kill "$pid" 2>/dev/null || true; fi
    for _ in $(seq 300); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.2
    done
    rm -f "$dir/pid"
    ;;
java)
    shift 2
    run "$@"
    ;;
*)
    echo "start, stop, kill or java, not $what" >&2
    exit 64
    ;;
esac
