// An app under test.
import { App, Permanent, Retry } from "meshwork";

export const app = new App();
export const sent = [];

app.middleware((ctx, goOn) => {
  ctx.log(`runs ${ctx.task}`);
  return goOn();
});

export const sendMail = app.task("mail.send", { retries: 2, backoff: "10s" }, ({ to }) => {
  if (to === "nobody") throw new Retry("no such user", { after: 60 });
  if (to === "broken") throw new TypeError("no such host");
  sent.push(to);
  return `sent to ${to}`;
});

export const order = app.task("order", async ({ number }, ctx) => {
  if (number < 0) throw new Permanent("no such order");
  ctx.progress(0.5, "half");
  const child = await ctx.addChild(sendMail, { to: "ada" });
  return { number, attempt: ctx.attempt, child };
});

export async function placeOrder(number) {
  await order.options({ delay: "10m" }).enqueue({ number });
}
