// Tests for any runner.
import assert from "node:assert";

import { JobFailed, Permanent } from "meshwork";
import { TestStore, perform } from "meshwork/testing";

import { app, order, placeOrder, sendMail, sent } from "./shop.mjs";

export function tests(test) {
  test("a task runs without a store", async () => {
    const done = await perform(order, { number: 7 }, { attempt: 3 });
    assert.deepEqual(done.result, { number: 7, attempt: 3, child: "test.1" });
    assert.deepEqual([done.log, done.progress], ["runs order\n", { fraction: 0.5, message: "half" }]);
    assert.deepEqual([done.children[0].task, done.children[0].args], ["mail.send", { to: "ada" }]);
    await assert.rejects(perform(order, { number: -1 }), Permanent);
  });

  test("jobs are enqueued and run by the clock", async () => {
    const store = new TestStore(app);
    try {
      sent.length = 0;
      await placeOrder(7);
      store.assertEnqueued(order, { number: 7 });
      store.assertEnqueued(order);
      store.refuteEnqueued(order, { number: 8 });
      store.refuteEnqueued(sendMail);
      assert.throws(() => store.assertEnqueued(order, { number: 8 }), /open jobs: \[{"number":7}\]/);
      assert.deepEqual(await store.drain(), { finished: 0, failed: 0, delayed: 1 });
      store.advance(600);
      assert.deepEqual(await store.drain(), { finished: 2, failed: 0, delayed: 0 });
      assert.deepEqual(sent, ["ada"]);
    } finally {
      store.close();
    }
  });

  test("retries wait for the clock", async () => {
    const store = new TestStore(app);
    try {
      for (const [to, pauses, message] of [["nobody", [60, 60], "no such user"], ["broken", [10, 20], "TypeError: no such host"]]) {
        const job = await sendMail.enqueue({ to });
        for (const pause of pauses) {
          assert.equal((await store.drain()).delayed, 1);
          store.advance(pause - 1);
          assert.equal((await store.drain()).delayed, 1);
          store.advance(1);
        }
        await assert.rejects(job.result(), (error) => error instanceof JobFailed && error.message === message);
      }
      assert.equal(await sendMail.call({ to: "eve" }), "sent to eve");
    } finally {
      store.close();
    }
  });
}
