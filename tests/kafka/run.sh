#!/usr/bin/env bash
# `asof` and a real broker: kills, a broker that goes away, a second instance, messages that cannot be taken.
# Every message is to be there once, and the rows are to be those that the messages say.
#
#   run.sh ASOF [MESSAGES] [KILLS] [OUTAGE_SECONDS]
#
# ASOF_SEED: the seed of the moments at which processes are killed (printed). KAFKA_LIBS: see broker.sh.
# Leaves with 77 where there is no Java or Maven.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
asof=$(realpath "${1:?the program asof}")
messages=${2:-60000}
kills=${3:-6}
outage=${4:-3}
seed=${ASOF_SEED:-$RANDOM}
RANDOM=$seed
port=$((20000 + $$ % 10000))
work=$(mktemp -d)
broker=$work/broker
export KAFKA_LIBS=${KAFKA_LIBS:-$work/libs}
unset ASOF_STORE ASOF_LOG
child=
leave() {
    [ -z "$child" ] || kill -9 "$child" 2>/dev/null || true
    "$here/broker.sh" kill "$broker" || true
    rm -rf "$work"
}
trap leave EXIT
die() { printf 'FAILED: %s (seed %s)\n' "$*" "$seed" >&2; exit 1; }
say() { printf '%5ss  %s\n' "$SECONDS" "$*"; }

code=0
"$here/broker.sh" start "$broker" "$port" || code=$?
[ "$code" != 69 ] || { echo "skipped: no Java, no Maven, or no Kafka to be fetched"; exit 77; }
[ "$code" = 0 ] || die "no broker"
tool() { "$here/broker.sh" java "$broker" "$@" >>"$work/tools.log" 2>&1; }

# Messages: a third of the keys are written often; some are deleted; one message in 1,000 is none.
python3 - "$work" "$messages" <<'PY'
import json, random, sys
work, n = sys.argv[1], int(sys.argv[2])
random.seed(7)
state, poison = {}, 0
with open(f"{work}/messages.tsv", "w") as out:
    for i in range(n):
        if i % 1000 == 999:
            out.write(f"poison\tno message {i}\n")
            poison += 1
            continue
        key = random.randrange(n // 3 + 1)
        op = "d" if key in state and random.random() < 0.1 else "u"
        out.write(f"{key}\t" + json.dumps({"o": op, "id": key, "n": i}) + "\n")
        if op == "d":
            del state[key]
        else:
            state[key] = i
with open(f"{work}/expected", "w") as out:
    out.writelines(f"{k},{state[k]}\n" for k in sorted(state))
with open(f"{work}/poison", "w") as out:
    out.write(str(poison))
PY
tool org.apache.kafka.tools.TopicCommand --bootstrap-server "127.0.0.1:$port" --create --topic rows --partitions 4
produce() {
    tool kafka.tools.ConsoleProducer --bootstrap-server "127.0.0.1:$port" --topic rows \
        --property parse.key=true --property "key.separator=$(printf '\t')"
}
half=$((messages / 2))
head -n "$half" "$work/messages.tsv" | produce || { tail -5 "$work/tools.log"; die "messages cannot be produced"; }
say "$half messages in 4 partitions, seed $seed"

store=$work/s.asof
ingest=("$asof" ingest "$store" -b "127.0.0.1:$port" -t rows --table t --format json --key id --op o
    --columns 'id, n, o' --quiet)
ask() { "$asof" sql "$store" "$1" --output csv | tail -n +2; }
# Every message that is there is there once, and none before the last of its partition is missing.
whole() {
    # Events of the history and messages that were put aside make up each partition.
    ask "SELECT _stream, count(*), min(p), max(p) FROM (SELECT _stream, _position AS p FROM history('t')
         UNION ALL SELECT _stream, _position FROM quarantine()) GROUP BY 1 ORDER BY 1" >"$work/parts"
    while IFS=, read -r stream n first last; do
        [ "$first" = 0 ] && [ "$n" = $((last + 1)) ] || die "$1: $stream has $n messages from $first to $last"
    done <"$work/parts"
}

# With little read ahead, the broker is needed to the end.
slowly=(-X queued.min.messages=50 -X fetch.message.max.bytes=2000 --batch 20)
for round in $(seq "$kills"); do
    "${ingest[@]}" "${slowly[@]}" &
    child=$!
    sleep "$((RANDOM % 2)).$((RANDOM % 9))$((RANDOM % 10))"
    kill -9 "$child" 2>/dev/null || true
    wait "$child" 2>/dev/null || true
    child=
    [ ! -d "$store" ] || "$asof" verify "$store" --quiet >/dev/null || die "kill $round: verify"
    [ ! -d "$store" ] || [ -z "$(ask "SELECT 1 FROM commits() LIMIT 1")" ] || whole "kill $round"
done
say "$kills kills: $(ask "SELECT count(*) FROM history('t')") events, each once"

# Whoever takes standard input holds the store until that ends.
mkfifo "$work/input"
"$asof" ingest "$store" - --table other --key id --format json --quiet <"$work/input" &
child=$!
exec 9>"$work/input"
for _ in $(seq 200); do
    grep -qsw "$child" "$store/LOCK" && break
    sleep 0.05
done
code=0
"${ingest[@]}" 2>"$work/refused" || code=$?
[ "$code" = 3 ] && grep -q "$child" "$work/refused" || { cat "$work/refused"; die "a second instance left with $code"; }
say "a second instance is refused: $(head -1 "$work/refused")"
exec 9>&-
wait "$child" || die "the first instance left with $?"
child=

tail -n +$((half + 1)) "$work/messages.tsv" | produce || die "more messages cannot be produced"
"${ingest[@]}" "${slowly[@]}" &
child=$!
sleep 0.5
code=0
kill -TERM "$child" 2>/dev/null || true
wait "$child" || code=$?
child=
[ "$code" = 0 ] || die "SIGTERM: left with $code"
whole "after SIGTERM"

# The broker is killed while messages are taken, and comes back.
before=$(ask "SELECT count(*) FROM history('t')")
"${ingest[@]}" "${slowly[@]}" &
child=$!
sleep 0.4
"$here/broker.sh" kill "$broker"
kill -0 "$child" 2>/dev/null || die "all was taken before the broker was killed: take more messages"
away=$SECONDS
sleep "$outage"
ask "SELECT count(*) FROM t" >/dev/null || die "no question is answered while the broker is away"
"$here/broker.sh" start "$broker" "$port" >/dev/null
code=0
wait "$child" || code=$?
child=
[ "$code" = 0 ] || die "broker away: left with $code"
say "broker away for $outage s: $before events before, all of them $((SECONDS - away)) s after it was killed"

"${ingest[@]}"
whole "in the end"

# A flow that runs: what comes is taken, also after the broker was away, and SIGTERM ends it with 0.
flows=$work/f.asof
"$asof" sql "$flows" "CREATE FLOW rows AS AUTO CDC INTO t FROM STREAM kafka('rows', brokers => '127.0.0.1:$port',
    format => 'json', op => 'o') KEYS (id) COLUMNS (id bigint, n bigint, o text)" --quiet
"$asof" run "$flows" --quiet 2>"$work/run.err" &
child=$!
count() { "$asof" sql "$flows" "SELECT sum(events + quarantined) FROM commits()" --output csv | tail -1; }
until [ "$(count)" = "$messages" ]; do
    [ $((SECONDS - away)) -lt 120 ] || { cat "$work/run.err"; die "a run took $(count) of $messages messages"; }
    sleep 0.2
done
"$here/broker.sh" kill "$broker"
sleep 1
"$here/broker.sh" start "$broker" "$port" >/dev/null
head -n 1000 "$work/messages.tsv" | produce || die "more messages cannot be produced"
until [ "$(count)" = $((messages + 1000)) ]; do
    [ $((SECONDS - away)) -lt 180 ] || { cat "$work/run.err"; die "a run took $(count) messages after the broker was away"; }
    sleep 0.2
done
code=0
kill -TERM "$child"
wait "$child" || code=$?
child=
[ "$code" = 0 ] || die "asof run left with $code"
say "asof run: $((messages + 1000)) messages, the broker killed meanwhile"
total=$(ask "SELECT count(*) FROM history('t')")
aside=$(ask "SELECT count(*) FROM quarantine()")
[ $((total + aside)) = "$messages" ] || die "$total events and $aside put aside are not $messages messages"
[ "$aside" = "$(cat "$work/poison")" ] || die "$aside messages were put aside, not $(cat "$work/poison")"
ask "SELECT id, n FROM t ORDER BY id" >"$work/got"
cmp "$work/got" "$work/expected" || die "the rows are not those of the messages"
"$asof" verify "$store" --full --quiet >/dev/null || die "verify --full"
say "$total events, $aside put aside; $(wc -l <"$work/got") rows as they should be"
