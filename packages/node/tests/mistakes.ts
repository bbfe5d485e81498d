// Ten mistakes that a checker of types has to find; `cargo xtask packages` runs tsc on this file.

import { App, JobFailed, Retry, type Handle } from "meshwork";

const app = new App({ uri: "redis://127.0.0.1" }); // mistake

const add = app.task("math.add", { retries: 3 }, async ({ a, b = 1 }: { a: number; b?: number }, ctx) => {
  if (ctx.attempt === "1") throw new Error("later"); // mistake
  if (ctx.attempt === 2) throw new Retry("later", { after: "soon" }); // mistake
  return a + b;
});
app.task("wrong.option", { retry: 1 }, () => null); // mistake

export async function program(): Promise<void> {
  await add.enqueue({ a: "1" }); // mistake
  await add.enqueue({ a: 1, c: 2 }); // mistake
  await add.enqueue(); // mistake
  const total: string = await add.call({ a: 1 }); // mistake
  const job: Handle<string> = await add.enqueue({ a: 1 }); // mistake
  try {
    console.log(total, await job.result());
  } catch (error) {
    if (error instanceof JobFailed) console.log(error.jobs); // mistake
  }
}
