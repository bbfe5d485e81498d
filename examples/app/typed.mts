// Tasks with types: what is enqueued, and what comes back.

import { App, JobFailed, type Context, type Handle } from "meshwork";

interface Mail {
  to: string;
  subject?: string;
}

export const app = new App({ url: "redis://127.0.0.1" });

export const sendMail = app.task("mail.send", { retries: 3, key: (mail) => mail.to }, async (mail: Mail, ctx: Context) => {
  ctx.progress(0.5, "half");
  if (ctx.signal.aborted) throw new Error("aborted");
  return { to: mail.to, length: (mail.subject ?? "").length };
});
export const ping = app.task("ping", () => "pong");

app.schedule("@every 1h", sendMail, { to: "ada@example.org" });
app.middleware(async (ctx, goOn) => {
  ctx.log(`attempt ${ctx.attempt}`);
  return goOn();
});

export async function program(): Promise<string> {
  const job: Handle<{ to: string; length: number }> = await sendMail.options({ delay: "10m" }).enqueue({ to: "ada@example.org" });
  const jobs = await sendMail.enqueueMany([{ to: "bob@example.org", subject: "Hello" }]);
  try {
    const { length } = await job.result({ timeout: 30 });
    return `${length} ${jobs.length} ${await ping.call()}`;
  } catch (error) {
    if (error instanceof JobFailed) return String(error.job.error);
    throw error;
  }
}
