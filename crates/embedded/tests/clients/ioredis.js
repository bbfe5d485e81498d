// ioredis at the socket of an engine: the path of the socket is the argument.
const assert = require("node:assert/strict");
const Redis = require("ioredis");

const path = process.argv[2];

async function main() {
  const r = new Redis({ path, connectionName: "js" });
  await r.flushall();
  assert.equal(await r.ping(), "PONG");
  assert.equal(await r.set("a", "1", "PX", 60000), "OK");
  assert.equal(await r.get("a"), "1");
  await r.hset("h", { f: "1", g: "ü" });
  assert.deepEqual(await r.hgetall("h"), { f: "1", g: "ü" });
  assert.deepEqual(await r.zadd("z", 1.5, "m"), 1);
  assert.deepEqual(await r.zrange("z", 0, -1, "WITHSCORES"), ["m", "1.5"]);

  const piped = await r.pipeline().set("p", "1").incr("p").exec();
  assert.deepEqual(piped, [[null, "OK"], [null, 2]]);
  const multi = await r.multi().set("t", "1").incr("t").exec();
  assert.deepEqual(multi, [[null, "OK"], [null, 2]]);

  r.defineCommand("twice", { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], 2)" });
  assert.equal(await r.twice("n"), 2);
  assert.equal(await r.twice("n"), 4);

  const waits = r.duplicate();
  const popped = waits.blpop("queue", 30);
  await r.rpush("queue", "job");
  assert.deepEqual(await popped, ["queue", "job"]);

  const listener = r.duplicate();
  assert.equal(await listener.subscribe("news"), 1);
  const message = new Promise((heard) => listener.on("message", (...args) => heard(args)));
  assert.equal(await r.publish("news", "hello"), 1);
  assert.deepEqual(await message, ["news", "hello"]);

  let keys = [];
  for await (const some of r.scanStream({ count: 2 })) keys = keys.concat(some);
  assert.deepEqual([...new Set(keys)].sort(), ["a", "h", "n", "p", "t", "z"]);
  await assert.rejects(r.lpush("a", "x"), /WRONGTYPE/);
  for (const each of [r, waits, listener]) each.disconnect();
  console.log("ok");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
