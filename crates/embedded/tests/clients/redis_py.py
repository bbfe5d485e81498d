"""redis-py at the socket of an engine: the path of the socket and the protocol are the arguments."""

import sys
import threading

import redis

path, protocol = sys.argv[1], int(sys.argv[2])


def connect(**options):
    return redis.Redis(
        unix_socket_path=path, protocol=protocol, decode_responses=True, **options
    )


r = connect(client_name="py")
r.flushall()
assert r.ping() is True
assert r.client_getname() == "py"

assert r.set("a", "1", px=60_000) is True
assert r.get("a") == "1"
assert 0 < r.pttl("a") <= 60_000
assert r.incrby("a", 41) == 42
assert r.set("a", "x", nx=True) is None

r.hset("h", mapping={"f": "1", "g": "ü"})
assert r.hgetall("h") == {"f": "1", "g": "ü"}
r.zadd("z", {"m": 1.5, "n": 2})
scores = r.zrange("z", 0, -1, withscores=True)
assert [tuple(pair) for pair in scores] == [("m", 1.5), ("n", 2.0)], scores
assert r.zscore("z", "m") == 1.5
r.sadd("s", "x", "y")
assert set(r.smembers("s")) == {"x", "y"}
assert sorted(r.scan_iter(count=2)) == ["a", "h", "s", "z"]

with r.pipeline(transaction=True) as pipe:
    pipe.set("t", "1").incr("t").get("t")
    assert pipe.execute() == [True, 2, "2"]

with r.pipeline() as pipe:
    pipe.watch("t")
    r.set("t", "other")
    pipe.multi()
    pipe.set("t", "mine")
    try:
        pipe.execute()
        raise AssertionError("WATCH saw nothing")
    except redis.WatchError:
        pass

script = r.register_script("return redis.call('RPUSH', KEYS[1], ARGV[1], ARGV[2])")
assert script(keys=["l"], args=["x", "y"]) == 2
try:
    r.lpush("a", "x")
    raise AssertionError("wrong type was accepted")
except redis.ResponseError as error:
    assert str(error).startswith("WRONGTYPE"), error

# Blocking: woken by another connection, and by the end of its time.
pusher = threading.Thread(target=lambda: connect().rpush("queue", "job"))
pusher.start()
assert tuple(r.blpop(["queue"], timeout=30)) == ("queue", "job")
pusher.join()
assert r.blpop(["queue"], timeout=0.01) is None

# Pub/sub: confirmation, message, pattern.
listener = connect().pubsub()
listener.subscribe("news")
listener.psubscribe("n*")
kinds = [listener.get_message(timeout=30)["type"] for _ in range(2)]
assert kinds == ["subscribe", "psubscribe"], kinds
assert r.publish("news", "hello") == 2
messages = [listener.get_message(timeout=30) for _ in range(2)]
assert [m["data"] for m in messages] == ["hello", "hello"], messages

other = connect(db=3)
other.set("only", "here")
assert r.exists("only") == 0 and other.dbsize() == 1

assert r.info("server")["redis_version"].count(".") == 2
print("ok")
